#![no_main]

podwire_fuzz::program!("plugin_config");
