#![no_main]

podwire_fuzz::program!("static_config");
