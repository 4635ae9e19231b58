//! What the documentation says is what the tests prove.

use podwire_tests::pages;

#[test]
fn the_pages_are_what_the_tests_prove() {
    for page in pages::ALL {
        let path = page.path();
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(there == (page.text)(), "{} is outdated; run: cargo xtask docs", path.display());
    }
}
