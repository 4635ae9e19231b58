#![no_main]

podwire_fuzz::program!("migrate_node");
