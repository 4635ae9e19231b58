#![no_main]

podwire_fuzz::program!("host_local_files");
