#![no_main]

podwire_fuzz::program!("version_info");
