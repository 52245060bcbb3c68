//! How values are printed for debugging that hold secrets, or what has no text.

/// Implements `Debug` for a type by some of its fields; of the others it is only said that they are there.
///
/// ```ignore
/// mu_provider::debug_fields!(Stores { files });
/// ```
#[macro_export]
macro_rules! debug_fields {
    ($name:ident $(<$lifetime:lifetime>)? { $($field:ident),* }) => {
        impl ::std::fmt::Debug for $name $(<$lifetime>)? {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter
                    .debug_struct(stringify!($name))
                    $(.field(stringify!($field), &self.$field))*
                    .finish_non_exhaustive()
            }
        }
    };
}
