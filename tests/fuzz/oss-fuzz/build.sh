#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Called by OSS-Fuzz in its image, with $CC, $CFLAGS, $SRC, $WORK and $OUT. By hand:
#
#   SRC=/tmp/src WORK=/tmp/work OUT=/tmp/out CC=clang tests/fuzz/oss-fuzz/build.sh
#
# Makes each target of tests/fuzz with its first corpus in $OUT, and the shared libraries that they
# load beside them: where they are run there are none.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && git rev-parse --show-toplevel 2>/dev/null) || root=
root=${root:-$SRC/rocelane}
build=$WORK/build
mkdir -p "$WORK" "$OUT/lib"
rm -rf "$build"

# $CFLAGS has the sanitizers; meson must neither add others nor ask for all symbols at link time.
meson setup "$build" "$root" -Dfuzz=true -Dbuildtype=plain -Db_lundef=false -Dasserts=true \
	-Dwerror=false
mapfile -t targets < <(ninja -C "$build" -t targets all |
	sed -n 's|^\(tests/fuzz/fuzz_[a-z]*\): .*|\1|p' | sort -u)
[ ${#targets[@]} -gt 0 ]
ninja -C "$build" "${targets[@]}" "${targets[@]/%/_replay}"

for target in "${targets[@]}"; do
	name=${target##*/}
	cp "$build/$target" "$OUT/"
	corpus=$WORK/corpus-$name
	rm -rf "$corpus"
	mkdir -p "$corpus"
	"$build/${target}_replay" -w "$corpus"
	kept=$root/tests/fuzz/corpus/${name#fuzz_}
	if [ -d "$kept" ]; then
		cp "$kept"/* "$corpus/"
	fi
	(cd "$corpus" && zip -q -r "$OUT/${name}_seed_corpus.zip" .)
	ldd "$OUT/$name" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
		grep -v -E '/(libc|libm|libdl|libpthread|librt)\.so' |
		xargs -r cp -L -n -t "$OUT/lib"
	patchelf --set-rpath '$ORIGIN/lib' "$OUT/$name"
done
# With so many features libFuzzer's default schedule makes a twelfth of the runs.
printf '[libfuzzer]\nentropic = 0\n' >"$OUT/fuzz_responder.options"
