//! Finds the strategy that the settings name.

use crate::select::{Highest, Minimal, Strategy};
use crate::workspace::Resolution;

/// The strategy of a name.
pub fn strategy_named(resolution: Resolution) -> &'static dyn Strategy {
    match resolution {
        Resolution::Highest => &Highest,
        Resolution::Minimal => &Minimal,
    }
}
