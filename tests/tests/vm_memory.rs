//! The memory that a call takes, of the plugins that need another kernel.

use podwire_tests::differential::IN_THE_GUEST;
use podwire_tests::memory::assert_small;

#[test]
fn an_add_of_each_plugin_takes_at_most_3_megabytes() {
    assert_small(&IN_THE_GUEST);
}
