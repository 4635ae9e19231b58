#![no_main]

podwire_fuzz::program!("conntrack_messages");
