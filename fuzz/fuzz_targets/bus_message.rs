#![no_main]

podwire_fuzz::program!("bus_message");
