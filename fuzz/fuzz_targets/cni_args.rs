#![no_main]

podwire_fuzz::program!("cni_args");
