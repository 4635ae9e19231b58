#![no_main]

podwire_fuzz::program!("tc_messages");
