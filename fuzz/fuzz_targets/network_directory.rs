#![no_main]

podwire_fuzz::program!("network_directory");
