#![no_main]

podwire_fuzz::program!("result");
