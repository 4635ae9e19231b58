#![no_main]

podwire_fuzz::program!("netlink_replies");
