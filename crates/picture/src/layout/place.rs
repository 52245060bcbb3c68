//! The vertical place of each thing in a layer: as near as possible to the mean of its neighbours, in the
//! given order, with space in between.

use super::layers::Layered;

/// After this many sweeps, the eye sees no difference.
const SWEEPS: usize = 12;

/// Space between two nodes, one below the other.
const BETWEEN_NODES: f64 = 18.0;

/// Space between anything else.
const BETWEEN_OTHERS: f64 = 6.0;

/// How much more an edge is straightened between two of its own pieces than at a node.
const STRAIGHT: f64 = 4.0;

/// The middle of each, in pixels downwards from somewhere.
pub(super) fn centres(layered: &Layered, layers: &[Vec<usize>]) -> Vec<f64> {
    let mut centres = vec![0.0; layered.sizes.len()];
    for layer in layers {
        let gaps = gaps(layered, layer);
        for (&at, gap) in layer.iter().zip(gaps) {
            centres[at] = gap;
        }
    }
    for sweep in 0..SWEEPS {
        let forth = sweep % 2 == 0;
        for step in 0..layers.len() {
            let layer = &layers[if forth { step } else { layers.len() - 1 - step }];
            let is_last = sweep + 2 >= SWEEPS;
            let wishes: Vec<f64> =
                layer.iter().map(|&at| wish(layered, at, &centres, forth, is_last)).collect();
            for (&at, centre) in layer.iter().zip(fitted(&wishes, &gaps(layered, layer))) {
                centres[at] = centre;
            }
        }
    }
    centres
}

/// How far each of a layer is at least below the first.
fn gaps(layered: &Layered, layer: &[usize]) -> Vec<f64> {
    let mut gaps = Vec::with_capacity(layer.len());
    let mut end = 0.0;
    for (index, &at) in layer.iter().enumerate() {
        if let Some(&above) = index.checked_sub(1).and_then(|index| layer.get(index)) {
            let both = layered.is_node(above) && layered.is_node(at);
            let space = if both { BETWEEN_NODES } else { BETWEEN_OTHERS };
            end += (layered.sizes[above].height + layered.sizes[at].height) / 2.0 + space;
        }
        gaps.push(end);
    }
    gaps
}

/// The place that it would have if it were alone.
fn wish(layered: &Layered, at: usize, centres: &[f64], forth: bool, both_sides: bool) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    let sides = [(&layered.before[at], forth), (&layered.behind[at], !forth)];
    for (joined, is_asked) in sides {
        if !is_asked && !both_sides {
            continue;
        }
        for &other in joined {
            let is_own = !layered.is_node(at) && !layered.is_node(other);
            let weight = if is_own { STRAIGHT } else { 1.0 };
            sum += weight * centres[other];
            weights += weight;
        }
    }
    if weights == 0.0 { centres[at] } else { sum / weights }
}

/// The places nearest to the wishes (by least squares) that keep the gaps. Things that would be too close
/// move as a block: the pooling of adjacent violators.
fn fitted(wishes: &[f64], gaps: &[f64]) -> Vec<f64> {
    // For each block, the sum of its members' wishes without the gaps, and the number of members.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (wish, gap) in wishes.iter().zip(gaps) {
        let mut block = (wish - gap, 1);
        while let Some(&(sum, count)) = blocks.last() {
            if sum / count as f64 <= block.0 / block.1 as f64 {
                break;
            }
            block = (block.0 + sum, block.1 + count);
            blocks.pop();
        }
        blocks.push(block);
    }
    let starts =
        blocks.iter().flat_map(|&(sum, count)| std::iter::repeat_n(sum / count as f64, count));
    starts.zip(gaps).map(|(start, gap)| start + gap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_too_near_is_moved_as_a_block() {
        assert_eq!(fitted(&[0.0, 100.0], &[0.0, 10.0]), [0.0, 100.0]);
        assert_eq!(fitted(&[50.0, 50.0, 50.0], &[0.0, 10.0, 20.0]), [40.0, 50.0, 60.0]);
        assert_eq!(fitted(&[9.0, 0.0, 100.0], &[0.0, 10.0, 20.0]), [-0.5, 9.5, 100.0]);
    }
}
