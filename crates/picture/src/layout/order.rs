//! The order of the things in their layers, such that few edges cross. Sweeping back and forth, it moves each
//! thing to the mean place of its neighbours, and keeps the best of all sweeps.

use super::layers::Layered;

/// How many times to sweep; more sweeps hardly help.
const SWEEPS: usize = 24;

/// What is in each layer, from top to bottom.
pub(super) fn ordered(layered: &Layered) -> Vec<Vec<usize>> {
    let mut layers: Vec<Vec<usize>> = vec![Vec::new(); layered.count];
    for at in layered.all() {
        layers[layered.layer[at]].push(at);
    }
    let mut place = vec![0; layered.sizes.len()];
    settle(&layers, &mut place);
    let mut best = layers.clone();
    let mut fewest = crossings(layered, &layers, &place);
    for sweep in 0..SWEEPS {
        if fewest == 0 {
            break;
        }
        let forth = sweep % 2 == 0;
        for step in 0..layers.len() {
            let number = if forth { step } else { layers.len() - 1 - step };
            let joined = if forth { &layered.before } else { &layered.behind };
            sort(&mut layers[number], joined, &mut place);
        }
        let now = crossings(layered, &layers, &place);
        if now < fewest {
            fewest = now;
            best.clone_from(&layers);
        }
    }
    best
}

fn settle(layers: &[Vec<usize>], place: &mut [usize]) {
    for layer in layers {
        for (index, &at) in layer.iter().enumerate() {
            place[at] = index;
        }
    }
}

/// Sorts a layer by the mean place of each thing's neighbours. A thing without neighbours stays where it is.
fn sort(layer: &mut Vec<usize>, joined: &[Vec<usize>], place: &mut [usize]) {
    let mean = |at: usize| {
        let others = &joined[at];
        if others.is_empty() {
            return place[at] as f64;
        }
        others.iter().map(|&other| place[other] as f64).sum::<f64>() / others.len() as f64
    };
    let mut keyed: Vec<(f64, usize)> = layer.iter().map(|&at| (mean(at), at)).collect();
    keyed.sort_by(|(left, _), (right, _)| left.total_cmp(right));
    *layer = keyed.into_iter().map(|(_, at)| at).collect();
    for (index, &at) in layer.iter().enumerate() {
        place[at] = index;
    }
}

/// How many edges cross.
fn crossings(layered: &Layered, layers: &[Vec<usize>], place: &[usize]) -> usize {
    layers.iter().map(|layer| crossings_behind(layered, layer, place)).sum()
}

/// How many edges cross between a layer and the next, counted with a tree of sums: W. Barth, M. Jünger and P.
/// Mutzel, "Simple and Efficient Bilayer Cross Counting" (2002).
fn crossings_behind(layered: &Layered, layer: &[usize], place: &[usize]) -> usize {
    let mut ends = Vec::new();
    for &at in layer {
        let start = ends.len();
        ends.extend(layered.behind[at].iter().map(|&other| place[other]));
        ends[start..].sort_unstable();
    }
    let mut sums = vec![0; ends.iter().max().map_or(0, |last| last + 2)];
    let mut crossings = 0;
    for (count, &end) in ends.iter().enumerate() {
        // Earlier edges that end at or above this one do not cross it.
        let mut index = end + 1;
        let mut not_crossing = 0;
        while index > 0 {
            not_crossing += sums[index];
            index &= index - 1;
        }
        crossings += count - not_crossing;
        let mut index = end + 1;
        while index < sums.len() {
            sums[index] += 1;
            index += index & index.wrapping_neg();
        }
    }
    crossings
}
