#!/usr/bin/env bash
# The one test command. Installs what it needs, runs every check, and closes
# with a line "N passed, N failed".
#
#   ./test.sh          everything; property tests with a fixed seed and 250 cases each
#   ./test.sh --full   the same with property tests of 20,000 cases and a new seed,
#                      and with every redistribution of one axis
#
# Cargo's tests are counted one by one, every other check as one. The output of
# each check is kept in target/test-logs; that of a failed one is shown.
set -u
cd "$(dirname "$0")" || exit 1
export RUST_BACKTRACE=0 CARGO_TERM_COLOR=never
# Everything is built once, and nobody looks at it with a debugger.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Nothing in the environment may make the checks believe in a launcher.
unset OMPI_COMM_WORLD_RANK PMI_RANK PMIX_RANK SLURM_STEP_NUM_TASKS OUTCORE_RANKS
if [ "${1:-}" = --full ]; then
  export PROPTEST_CASES=20000
else
  export PROPTEST_CASES=250 PROPTEST_RNG_SEED=1
fi

logs=target/test-logs
mkdir -p "$logs"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 failures=()

# check NAME COMMAND...: runs it and counts it, or the tests that it reports.
check() {
  run_check "$@"
  report "$1"
}

# beside NAME COMMAND...: as check, two at a time; together reports them in their order.
pairs=() running=0
beside() {
  if [ $running -ge 2 ]; then
    wait -n
    running=$((running - 1))
  fi
  pairs+=("$1")
  running=$((running + 1))
  run_check "$@" &
}
together() {
  local name
  wait
  for name in "${pairs[@]}"; do report "$name"; done
  pairs=() running=0
}

log_of() { echo "$logs/${1//[^a-zA-Z0-9.-]/_}.log"; }

# run_check NAME COMMAND...: its output, whether it succeeded, and the seconds it took.
run_check() {
  local log start=$SECONDS ok=1
  log=$(log_of "$1")
  shift
  rm -f "$log.end"
  "$@" >"$log" 2>&1 </dev/null || ok=0
  echo "$ok $((SECONDS - start))" >"$log.end"
}

# report NAME: counts and tells what came of it.
report() {
  local name=$1 log ok=0 seconds=0 p f
  log=$(log_of "$name")
  read -r ok seconds <"$log.end"
  read -r p f < <(awk '/^test result:/ { for (i = 1; i < NF; i++) { if ($(i+1) ~ /^passed/) p += $i; if ($(i+1) ~ /^failed/) f += $i } } END { print p + 0, f + 0 }' "$log")
  if [ "$p" = 0 ] && [ "$f" = 0 ]; then
    p=$ok f=$((1 - ok))
  elif [ "$ok" = 0 ] && [ "$f" = 0 ]; then
    f=1
  fi
  passed=$((passed + p)) failed=$((failed + f))
  printf '%-62s %5s passed %3s failed %4ss\n' "$name" "$p" "$f" "$seconds"
  if [ "$f" != 0 ]; then
    failures+=("$name")
    echo "----- the end of $log"
    tail -n 60 "$log"
    echo "-----"
  fi
}

# fails_with TEXT COMMAND...: succeeds if the command fails and says TEXT.
fails_with() {
  local text=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "it should have failed: $output"
    return 1
  fi
  echo "$output"
  grep -qF -- "$text" <<<"$output"
}

install() {
  local missing=() package sudo=
  for package in openmpi-bin libopenmpi-dev mpich libmpich-dev libclang-dev gcc python3 python3-venv hdf5-tools; do
    dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    [ "$(id -u)" = 0 ] || sudo=sudo
    echo "installing ${missing[*]}"
    $sudo apt-get update -q && DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q "${missing[@]}" || return 1
  fi
  [ -x target/test-python/bin/python ] || python3 -m venv target/test-python || return 1
  target/test-python/bin/python -c 'import numpy, zarr, h5py, netCDF4, tifffile, moto.server' 2>/dev/null ||
    target/test-python/bin/pip install -q numpy 'zarr>=3' h5py netCDF4 tifffile 'moto[server]'
}

mpirun_of() { # LIBRARY RANKS COMMAND...
  local library=$1 ranks=$2 own
  shift 2
  if [ "$library" = openmpi ]; then
    # Two that start at the same time would make the same directory.
    own=$(mktemp -d "$scratch/mpi.XXXXXX")
    timeout 300 mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 --mca orte_tmpdir_base "$own" -n "$ranks" "$@"
  else
    timeout 300 mpirun.mpich -n "$ranks" "$@"
  fi
}

# The crates at the bottom import none of the others.
leaves_are_leaves() {
  local crate tree
  for crate in geometry transport storage; do
    tree=$(cargo tree -q -p "outcore-$crate" -e normal --depth 1 --prefix none) || return 1
    if grep -v "^outcore-$crate " <<<"$tree" | grep outcore; then
      echo "outcore-$crate must not depend on another crate of outcore"
      return 1
    fi
  done
}

# The default build needs no system library.
default_build_is_plain() {
  local tree
  tree=$(cargo tree -q -p outcore-cli -e normal,build --prefix none) || return 1
  if grep -E '^(mpi|mpi-sys|bindgen|cmake) ' <<<"$tree"; then
    echo "the default build must come from crates.io alone"
    return 1
  fi
}

# Builds all tests, and lists them: the directory of a crate, and a program of its tests.
build_tests() {
  cargo test --workspace --exclude outcore-transport-mpi --no-run --message-format=json-render-diagnostics >"$scratch/artifacts" || return 1
  sed -n 's|.*"manifest_path":"\([^"]*\)/Cargo.toml".*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*|\1 \2|p' \
    "$scratch/artifacts" >"$scratch/tests"
  [ -s "$scratch/tests" ]
}

# In the directory of its crate, as cargo does it.
run_tests() { (cd "$1" && "$2"); }

example_on_threads() { OUTCORE_RANKS=$2 "target/debug/examples/$1"; }

# A file written by an MPI-IO program, read by our ranks under the same MPI:
# after an odd number of repetitions its sections hold negated values.
reads_what_mpi_io_wrote() {
  local library=$1 here="$scratch/mpiio-$1"
  mkdir -p "$here"
  "mpicc.$library" -O2 -w -o "$here/sections" crates/bench/peers/mpiio_sections.c || return 1
  # Writing back its own values creates the file; then each rank's section is negated.
  mpirun_of "$library" 4 "$here/sections" "$here/data.bin" 256 300 write coll 1 1+32*p:32+32*p:2 3:299:4 || return 1
  mpirun_of "$library" 4 "target/$library/debug/outcore" read \
    "raw:$here/data.bin?shape=256x300&type=f32&layout=column" '(1+32*p:32+32*p:2, 3:299:4)' -o "$here/part%r.npy" || return 1
  mpirun_of "$library" 4 "target/$library/debug/outcore" read \
    "raw:$here/data.bin?shape=256x300&type=f32&layout=column" ':, ::7' -o "$here/all.npy" || return 1
  target/test-python/bin/python - "$here" <<'PYTHON'
import sys, numpy as np
here = sys.argv[1]
a = (np.arange(256)[:, None] + np.arange(300)[None, :] * 256).astype(np.float32)
for p in range(4):
    a[32*p:32+32*p:2, 2:299:4] *= -1
for p in range(4):
    part = np.load(f"{here}/part{p}.npy")
    assert np.array_equal(part, a[32*p:32+32*p:2, 2:299:4]), f"rank {p}"
    assert (part <= 0).all() and part.size == 16 * 75
assert np.array_equal(np.load(f"{here}/all.npy"), a[:, ::7])
print("the same bytes")
PYTHON
}

# A filter on local files, by as many MPI processes as there are files, gives
# what one rank on one file gives.
filters_local_files() {
  local library=$1 here="$scratch/filter-$1" program="target/$1/debug/outcore"
  mkdir -p "$here"
  "$program" create "$here/field.npy" --shape 61x47 --type f32 --fill random || return 1
  "$program" median "$here/field.npy" "$here/one.npy" --window 3x5 || return 1
  "$program" convert "$here/field.npy" "$here/parts.oc" --distribution 'block,block' --grid 2x2 --overlap 1,2 || return 1
  mpirun_of "$library" 4 "$program" median "$here/parts.oc" "$here/filtered.oc" --window 3x5 || return 1
  "$program" convert "$here/filtered.oc" "$here/back.npy" --ranks 3 || return 1
  cmp "$here/one.npy" "$here/back.npy"
}

# Ranks write overlapping sections together: the highest one's values stay,
# whatever the way.
writes_together() {
  local library=$1 here="$scratch/together-$1" program="target/$1/debug/outcore" strategy rank
  mkdir -p "$here"
  for rank in 0 1 2 3; do
    "$program" create "$here/from$rank.npy" --shape 20x31 --type f32 --fill $((rank + 1)) || return 1
  done
  for strategy in auto direct sieving mapped two-phase; do
    "$program" create "$here/$strategy.npy" --shape 64x31 --type f32 || return 1
    mpirun_of "$library" 4 "$program" write "$here/$strategy.npy" '10*p:10*p+20, :' --from "$here/from%r.npy" --strategy $strategy || return 1
  done
  target/test-python/bin/python - "$here" <<'PYTHON'
import sys, numpy as np
a = np.zeros((64, 31), np.float32)
for p in range(4):
    a[10*p:10*p+20] = p + 1
for strategy in "auto direct sieving mapped two-phase".split():
    assert np.array_equal(np.load(f"{sys.argv[1]}/{strategy}.npy"), a), strategy
print("the same values")
PYTHON
}

# Elements at listed places, dealt out to processes, are those that one rank gets.
gathers_and_scatters() {
  local library=$1 here="$scratch/places-$1" program="target/$1/debug/outcore"
  mkdir -p "$here"
  target/test-python/bin/python - "$here" <<'PYTHON' || return 1
import sys, numpy as np
rng = np.random.default_rng(1)
np.save(sys.argv[1] + "/field.npy", rng.random((300, 70)))
np.save(sys.argv[1] + "/wanted.npy", rng.permutation(21000)[:9000].astype(np.uint64))
np.save(sys.argv[1] + "/values.npy", rng.random(9000))
PYTHON
  mpirun_of "$library" 3 "$program" gather "$here/field.npy" --indices "$here/wanted.npy" -o "$here/got.npy" || return 1
  cp "$here/field.npy" "$here/changed.npy"
  mpirun_of "$library" 3 "$program" scatter "$here/changed.npy" --indices "$here/wanted.npy" --values "$here/values.npy" || return 1
  target/test-python/bin/python - "$here" <<'PYTHON'
import sys, numpy as np
field, wanted, values, got, changed = (np.load(f"{sys.argv[1]}/{name}.npy") for name in "field wanted values got changed".split())
assert np.array_equal(got, field.reshape(-1)[wanted])
field.reshape(-1)[wanted] = values
assert np.array_equal(changed, field)
print("the same values")
PYTHON
}

# A contraction by processes, wherever its factors are, is that of the plain loop.
contracts() {
  local library=$1 here="$scratch/contract-$1" way
  mkdir -p "$here"
  for way in shared calls replicas files striped; do
    mpirun_of "$library" 3 "target/$library/debug/outcore" contract 'i0[p1,p2] += t[p1,p3,p4,h1] * i1[p3,p4,h1,p2]' \
      --segments O=10,6,4,3 --segments V=20,12,8,6 --index p=O --index h=V --make --check --force --from $way \
      --array "i0=$here/i0.oc" --array "t=$here/t.oc" --array "i1=$here/i1.oc" || return 1
  done
}

# All ranks are killed at once while they save checkpoints, some times; another
# number of ranks then finds the last one that was complete, or the one after.
restarts_after_kills() {
  local library=$1 here="$scratch/killed-$1" program="target/$1/debug/examples/checkpoint_restart" round ranks saved found
  for round in 1 2 3 4 5; do
    ranks=$((round % 4 + 2))
    # Not what the round before has said.
    : >"$here.log"
    mpirun_of "$library" $ranks "$program" "$here" 1000000 >>"$here.log" 2>&1 &
    until [ "$(grep -c '^saved step' "$here.log")" -ge 2 ]; do
      kill -0 $! 2>/dev/null || { cat "$here.log"; return 1; }
      sleep 0.01
    done
    sleep 0.0$((RANDOM % 100))
    kill -KILL $(sed -n 's/^process \([0-9]*\)$/\1/p' "$here.log")
    wait $!
    saved=$(sed -n 's/^saved step //p' "$here.log" | tail -n 1)
    found=$(mpirun_of "$library" $((ranks + 1)) "$program" "$here" 0 | sed -n 's/^found step //p')
    echo "$ranks ranks saved step $saved; after that, $((ranks + 1)) found step $found"
    # The last lines of the killed ones may be lost.
    [ "${found:-0}" -ge "$saved" ] || return 1
  done
}

# Every rank of 5 prints the error of the one that failed.
all_five_are_told() {
  local output
  output=$("$@" 2>&1) || { echo "$output"; return 1; }
  echo "$output"
  [ "$(grep -c 'was told: rank 4: ' <<<"$output")" = 5 ]
}

demo_keeps_its_promises() {
  local output peak
  output=$(target/plain/outcore demo --directory "$scratch") || return 1
  echo "$output"
  peak=$(sed -n 's/.*peak memory \([0-9.]*\) MiB.*/\1/p' <<<"$output")
  grep -q 'every value read was right' <<<"$output" && awk "BEGIN { exit !($peak <= 128) }" && [ -z "$(ls "$scratch" | grep demo)" ]
}

echo "== what is needed, and the code"
# Meanwhile the code is looked at.
beside 'install' install
export OUTCORE_TEST_PYTHON=$PWD/target/test-python/bin/python
check 'fmt' cargo fmt --all --check
check 'clippy' cargo clippy -q --workspace --exclude outcore-transport-mpi --all-targets -- -D warnings
check 'docs' env RUSTDOCFLAGS='-D warnings' cargo doc -q --workspace --exclude outcore-transport-mpi --no-deps
check 'leaves are leaves' leaves_are_leaves
check 'the default build is plain' default_build_is_plain
together

echo "== threads"
check 'tests build' build_tests
# Two programs at a time: many tests wait for the disk.
while read -r crate program; do
  name=${program##*/}
  beside "${crate##*/}: ${name%-*}" run_tests "$crate" "$program"
done <"$scratch/tests"
together
check 'examples in the documentation' cargo test -q --workspace --exclude outcore-transport-mpi --doc --no-fail-fast
if [ "${1:-}" = --full ]; then
  check 'the whole space of redistributions' cargo test --release -p outcore-geometry -p outcore --test redistribution -- --ignored
fi
# As the tests were built, so that nothing is built twice.
check 'examples build' cargo build -q --workspace --exclude outcore-transport-mpi --examples
examples=$(cd crates/outcore/examples && ls ./*.rs | sed 's|./||; s|\.rs$||')
for example in $examples; do
  for ranks in 1 2 3 5 16; do
    beside "$example on $ranks threads" example_on_threads "$example" "$ranks"
  done
done
together
check 'all five threads are told' all_five_are_told env OUTCORE_RANKS=5 target/debug/examples/failing_rank
# The program without MPI, before it is built with it.
mkdir -p target/plain && cp target/debug/outcore target/plain/
check 'demo' demo_keeps_its_promises

# Builds the programs for one MPI in the same target directory, so that other
# crates are not built again, and keeps them in a directory of that MPI. The crates
# that are built again are not optimised: what runs on processes is small.
build_for() {
  local library=$1 kept=target/$1/debug example
  # A change of MPICC alone rebuilds nothing.
  local -x MPICC=mpicc.$library
  cargo clean -q -p mpi-sys || return 1
  local plain=() crate
  for crate in outcore outcore-apps outcore-bench outcore-cli; do
    plain+=(--config "profile.dev.package.$crate.opt-level=0")
  done
  cargo build -q "${plain[@]}" -p outcore-transport-mpi -p outcore-cli -p outcore --features outcore-cli/mpi,outcore/mpi --bins --examples || return 1
  mkdir -p "$kept/examples"
  cp target/debug/outcore target/debug/mpi-conformance "$kept" || return 1
  for example in $examples; do
    cp "target/debug/examples/$example" "$kept/examples" || return 1
  done
}

for library in openmpi mpich; do
  echo "== $library"
  # The code is the same for both, but for what bindgen makes of their headers.
  [ $library = mpich ] || check "$library: clippy" env MPICC=mpicc.$library cargo clippy -q -p outcore-transport-mpi -p outcore-bench -p outcore --features outcore-bench/mpi --lib --bins --examples -- -D warnings
  [ $library = mpich ] || check "$library: docs" env MPICC=mpicc.$library RUSTDOCFLAGS='-D warnings' cargo doc -q -p outcore-transport-mpi --no-deps
  [ $library = mpich ] || check "$library: build" build_for $library
  check "$library: transport tests" env MPICC=mpicc.$library cargo test -p outcore-transport-mpi --no-fail-fast
  bin=target/$library/debug
  # Waiting ranks of MPICH keep the cores for themselves.
  along=beside
  [ $library = openmpi ] || along=check
  # The other one is built meanwhile.
  [ $library = mpich ] || beside "mpich: build" build_for mpich
  for ranks in 1 2 3 5; do
    $along "$library: conformance on $ranks ranks" mpirun_of $library $ranks $bin/mpi-conformance
    for example in $examples; do
      $along "$library: $example on $ranks ranks" mpirun_of $library $ranks $bin/examples/"$example"
    done
  done
  together
  check "$library: conformance on 8 ranks" mpirun_of $library 8 $bin/mpi-conformance
  check "$library: redistribution on 8 ranks" mpirun_of $library 8 $bin/examples/redistribution
  check "$library: conformance on 5 ranks without the kernel's copies" mpirun_of $library 5 $bin/mpi-conformance --staged
  for ranks in 2 5; do
    check "$library: wrong lengths in an all-to-all of $ranks ranks" mpirun_of $library $ranks $bin/mpi-conformance --mismatch-all-to-all
    check "$library: conformance on $ranks ranks without shared memory" mpirun_of $library $ranks $bin/mpi-conformance --apart
  done
  check "$library: rank 1 of 5 fails while others visit its memory" mpirun_of $library 5 $bin/mpi-conformance --fail-loan 1
  for rank in 0 2 4; do
    check "$library: rank $rank of 5 fails in a collective" mpirun_of $library 5 $bin/mpi-conformance --fail $rank
  done
  check "$library: all five ranks are told" all_five_are_told mpirun_of $library 5 $bin/examples/failing_rank
  check "$library: reads what an MPI-IO program wrote" reads_what_mpi_io_wrote $library
  check "$library: local placement on 16 ranks" mpirun_of $library 16 $bin/examples/local_placement
  check "$library: filters local files" filters_local_files $library
  check "$library: writes overlapping sections together" writes_together $library
  check "$library: gathers and scatters" gathers_and_scatters $library
  check "$library: contracts, wherever the factors are" contracts $library
  for example in global_array work_stealing node_array disk_resident shared_file others_disks placed remote_reduction procedure_failures; do
    check "$library: $example on 3 ranks that share no memory" mpirun_of $library 3 $bin/examples/$example apart
  done
  check "$library: procedure_data on 3 ranks that share no memory" mpirun_of $library 3 $bin/examples/procedure_data --apart
  check "$library: ranks killed while they save go on from there" restarts_after_kills $library
  check "$library: demo on 3 ranks" mpirun_of $library 3 $bin/outcore demo --directory "$scratch"
  check "$library: a bad section ends all ranks with one message" fails_with 'axis 0' mpirun_of $library 3 $bin/outcore read "raw:Cargo.toml?shape=10&type=u8" 0:11
  check "$library: without a launcher, threads" $bin/outcore demo --ranks 3 --directory "$scratch"
  check "$library: a build without MPI refuses the launcher" fails_with 'built without MPI' mpirun_of $library 2 target/plain/outcore info Cargo.toml
done
check "the launcher of another MPI is refused" fails_with 'but each is alone' mpirun_of mpich 2 target/openmpi/debug/outcore info Cargo.toml

[ ${#failures[@]} = 0 ] || printf 'failed: %s\n' "${failures[@]}"
echo "took $((SECONDS / 60)) min $((SECONDS % 60)) s"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
