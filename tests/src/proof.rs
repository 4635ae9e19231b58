//! Tests of tables whose rows are of plugins.

/// Tries all rows of a plugin, and panics with those that fail.
#[track_caller]
pub(crate) fn none_fails<Row>(
    plugin: &str,
    rows: &[Row],
    attempt: impl Fn(&Row) -> Result<(), String>,
) {
    assert!(!rows.is_empty(), "no row is about {plugin}");
    let faults: Vec<_> = rows.iter().filter_map(|row| attempt(row).err()).collect();
    assert!(faults.is_empty(), "{} rows fail:\n{}", faults.len(), faults.join("\n"));
}

/// Makes a test of each plugin, and one that finds rows of a plugin that is not named.
///
/// First comes what proves a plugin's rows, then what gives all rows, each with its
/// `plugin`.
#[macro_export]
macro_rules! prove_each {
    ($prove:path, $rows:path; $($name:ident: $plugin:literal;)*) => {
        $(
            #[test]
            fn $name() {
                $prove($plugin);
            }
        )*

        #[test]
        fn every_plugin_is_proven() {
            let proven = [$($plugin),*];
            for row in $rows() {
                assert!(proven.contains(&row.plugin), "no test proves {}", row.plugin);
            }
        }
    };
}
