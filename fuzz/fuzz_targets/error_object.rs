#![no_main]

podwire_fuzz::program!("error_object");
