//! Every strategy moves the same bytes; `calibrate` finds out what each of
//! them costs.

use serde_json::Value;

use crate::program::Place;

#[test]
fn every_strategy_reads_and_writes_the_same() {
    let place = Place::new();
    for layout in ["row", "column", "tiled:16x9"] {
        place.ok(&format!(
            "create a.oc --shape 90x70 --type f32 --layout {layout} --fill index --force"
        ));
        for strategy in ["auto", "direct", "sieving", "mapped"] {
            let read = format!("--strategy {strategy} --buffer 1000 --ranks 3 --force");
            place.ok(&format!("read a.oc 3::4,::3 -o part.npy {read}"));
            place.ok("read a.oc 3::4,::3 -o plain.npy --strategy direct --force");
            assert_eq!(
                place.bytes("part.npy"),
                place.bytes("plain.npy"),
                "{layout} {strategy}"
            );
            place.ok(&format!(
                "create b.oc --shape 90x70 --type f32 --layout {layout} --force"
            ));
            place.ok(&format!(
                "write b.oc 3::4,::3 --from part.npy --strategy {strategy} --buffer 1000 --ranks 3"
            ));
            place.ok("read b.oc -o b.npy --force");
            place.ok(&format!(
                "create c.oc --shape 90x70 --type f32 --layout {layout} --force"
            ));
            place.ok("write c.oc 3::4,::3 --from part.npy --strategy direct");
            place.ok("read c.oc -o c.npy --force");
            assert_eq!(
                place.bytes("b.npy"),
                place.bytes("c.npy"),
                "{layout} {strategy}"
            );
        }
    }
    let message = place.fails(2, "read a.oc --strategy magic");
    assert!(message.contains("direct, sieving, mapped"), "{message}");
}

/// Programs that sieve neighbouring elements at the same time leave each
/// other's alone.
#[test]
fn sieving_programs_do_not_disturb_each_other() {
    let place = Place::new();
    place.ok("create a.npy --shape 40000 --type i32");
    for round in 0..20 {
        let start = |section: &str| {
            let fill = (round + 1).to_string();
            let args = [
                "write",
                "a.npy",
                section,
                "--fill",
                &fill,
                "--strategy",
                "sieving",
                "--gap",
                "1MiB",
                "--buffer",
                "4096",
            ];
            place.command(args).spawn().expect("outcore starts")
        };
        let writers = [start("0::3"), start("1::3"), start("2::3")];
        for mut writer in writers {
            assert!(writer.wait().expect("it ends").success());
        }
        let expected = (round + 1i32).to_ne_bytes();
        assert!(
            place.npy("a.npy").chunks(4).all(|value| value == expected),
            "round {round}"
        );
    }
}

#[test]
fn calibrate_keeps_a_profile_that_explain_uses() {
    let place = Place::new();
    place.ok("create a.oc --shape 100x100 --type f32 --fill index");
    let cache = place.inside("cache");
    let run = |args: &[&str]| {
        let output = place
            .command(args)
            .env("XDG_CACHE_HOME", cache.root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let profile: Value = serde_json::from_str(&run(&["calibrate", ".", "--json"])).unwrap();
    assert!(profile["cached_read"]["each"].as_f64().unwrap() > 0.0);
    let kept: Value = serde_json::from_slice(&cache.bytes("outcore/profiles.json")).unwrap();
    assert_eq!(kept.as_object().unwrap().len(), 1);
    // A storage on which requests cost a second each is sieved.
    let slow = String::from_utf8(cache.bytes("outcore/profiles.json")).unwrap();
    let mut slow: Value = serde_json::from_str(&slow).unwrap();
    for profile in slow.as_object_mut().unwrap().values_mut() {
        profile["cached_read"]["each"] = 1.0.into();
        profile["cold_read"]["each"] = 1.0.into();
        profile["mapped"]["each"] = 1.0.into();
    }
    cache.write("outcore/profiles.json", slow.to_string());
    let text = run(&["explain", "a.oc", "::10, ::10"]);
    assert!(text.contains("strategy  sieving"), "{text}");
    // A damaged file of profiles is as good as none.
    cache.write("outcore/profiles.json", "{");
    assert!(run(&["explain", "a.oc"]).contains("strategy"));
}
