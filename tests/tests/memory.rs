//! The memory that a call takes, of the program as it ships.

use podwire_tests::differential::HERE;
use podwire_tests::memory::assert_small;

#[test]
fn an_add_of_each_plugin_takes_at_most_3_megabytes() {
    assert_small(&HERE);
}
