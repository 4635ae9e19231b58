#![no_main]

podwire_fuzz::program!("state_files");
