#![no_main]

podwire_fuzz::program!("nft_refusals");
