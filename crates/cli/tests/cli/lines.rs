//! `outcore fft` and `outcore adi`.

use crate::program::Place;

/// The f32 values of a .npy file in its own order.
fn values(place: &Place, name: &str) -> Vec<f32> {
    let bytes = place.npy(name);
    let (numbers, rest) = bytes.as_chunks::<4>();
    assert!(rest.is_empty());
    let numbers = numbers.iter();
    numbers.map(|number| f32::from_ne_bytes(*number)).collect()
}

#[test]
fn a_transform_and_its_inverse_give_the_array_again() {
    let place = Place::new();
    place.ok("create a.npy --shape 60x44 --type f32 --fill index");
    place.ok("convert a.npy a.oc --layout tiled:16x8");
    place.ok("convert a.npy parts.oc --distribution block,block --parts 4");
    let sum: f32 = values(&place, "a.npy").iter().sum();
    for (input, ranks) in [("a.npy", 1), ("a.oc", 3), ("parts.oc", 2)] {
        let options = format!("--ranks {ranks} --memory 256KiB --force");
        let told = place.ok(&format!("fft {input} s.oc {options}"));
        assert!(told.starts_with("transform of 60x44 f32 in "), "{told}");
        place.ok("convert s.oc s.npy --force");
        let spectrum = values(&place, "s.npy");
        assert_eq!(spectrum.len(), 2 * 60 * 44);
        assert!((spectrum[0] - sum).abs() < 1e-6 * sum && spectrum[1] == 0.0);
        let told = place.ok(&format!("fft s.oc again.npy --inverse --real {options}"));
        assert!(told.starts_with("inverse transform of 60x44 c64"), "{told}");
        let again = values(&place, "again.npy");
        let largest = again.iter().zip(values(&place, "a.npy"));
        let largest = largest.map(|(again, value)| (again - value).abs());
        assert!(largest.fold(0.0, f32::max) < 1e-2, "{input}");
    }
    let told = place.fails(1, "fft a.npy t.npy --axes 2");
    assert!(told.contains("no axis 2"), "{told}");
    let told = place.fails(1, "fft a.npy s.npy");
    assert!(told.contains("exists"), "{told}");
    let told = place.fails(1, "fft a.npy t.npy --memory 1KiB");
    assert!(told.contains("needs at least"), "{told}");
}

#[test]
fn heat_is_kept_far_from_the_edges() {
    let place = Place::new();
    place.ok("create a.npy --shape 80x70 --type f32");
    place.ok("write a.npy 40,35 --fill 1000");
    for (ranks, output) in [(1, "one.npy"), (3, "three.npy")] {
        let told = place.ok(&format!(
            "adi a.npy {output} --steps 9 --ranks {ranks} --memory 1MiB"
        ));
        assert!(
            told.starts_with("9 steps of 80x70 f32 in 10 passes"),
            "{told}"
        );
    }
    let one = values(&place, "one.npy");
    assert_eq!(one, values(&place, "three.npy"));
    assert!((one.iter().sum::<f32>() - 1000.0).abs() < 0.01);
    assert!(one[40 * 70 + 35] < 200.0 && one[41 * 70 + 36] > 10.0);
    let told = place.fails(1, "adi a.npy b.npy --steps 1 --ratio -1");
    assert!(told.contains("larger than 0"), "{told}");
}
