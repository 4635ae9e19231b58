#![no_main]

podwire_fuzz::program!("dhcp_greeting");
