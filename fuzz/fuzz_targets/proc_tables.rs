#![no_main]

podwire_fuzz::program!("proc_tables");
