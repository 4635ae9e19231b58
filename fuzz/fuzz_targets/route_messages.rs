#![no_main]

podwire_fuzz::program!("route_messages");
