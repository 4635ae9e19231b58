#![no_main]

podwire_fuzz::program!("capabilities");
