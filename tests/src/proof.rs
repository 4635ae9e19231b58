//! Tests of tables whose rows are of plugins.

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
