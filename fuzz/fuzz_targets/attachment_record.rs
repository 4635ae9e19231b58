#![no_main]

podwire_fuzz::program!("attachment_record");
