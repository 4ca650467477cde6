// RUN: burst-run %s --entry=plain --check --threads=2 | FileCheck %s
// RUN: burst-run %s --entry=queries --check --threads=2 | FileCheck %s
// RUN: burst-run %s --entry=ulysses --check --threads=2 | FileCheck %s
// RUN: burst-run %s --entry=alone --check --threads=2 | FileCheck %s
// RUN: burst-run %s --entry=decode --check --threads=2 | FileCheck %s
// RUN: burst-opt %s --burst-to-ring --remarks-filter=ring-verify -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=PROOF

// The largest score of every row, from states that travel, from states that are merged,
// over an all-to-all, of the one rank that there is, and from keys in parts; masks leave
// some rows without keys.

// CHECK: schedule proved
// CHECK: max: {{.*}}: ok

// PROOF-COUNT-4: proved="for every number of ranks"

shard.grid @cp(shape = 4)
shard.grid @one(shape = 1)
!q = tensor<2x61x4x16xbf16>
!k = tensor<2x47x2x16xbf16>
!k4 = tensor<2x47x4x16xbf16>
!l = tensor<2x4x61xf32>

func.func @plain(%q: !q, %k: !k, %v: !k)
    -> (!q, !l {burst.name = "lse"}, !l {burst.name = "max"}) {
  %o, %lse, %max = burst.attention %q, %k, %v mask causal score softcap<2.0>
      sequence <@cp, zigzag> strategy <ring_kv> : (!q, !k, !k) -> (!q, !l, !l)
  return %o, %lse, %max : !q, !l, !l
}

func.func @queries(%q: !q, %k: !k, %v: !k)
    -> (!q, !l {burst.name = "max"}) {
  %o, %lse, %max = burst.attention %q, %k, %v mask window<left = 9, right = 0>
      sequence <@cp, striped 4> strategy <ring_q> : (!q, !k, !k) -> (!q, !l, !l)
  return %o, %max : !q, !l
}

func.func @ulysses(%q: !q, %k: !k4, %v: !k4) -> (!l {burst.name = "max"}) {
  %o, %lse, %max = burst.attention %q, %k, %v mask causal
      sequence <@cp, contiguous> strategy <ulysses> : (!q, !k4, !k4) -> (!q, !l, !l)
  return %max : !l
}

func.func @alone(%q: !q, %k: !k, %v: !k)
    -> (!q, !l, !l {burst.name = "max"}) {
  %o, %lse, %max = burst.attention %q, %k, %v mask causal scale -3.0
      sequence <@one, contiguous> : (!q, !k, !k) -> (!q, !l, !l)
  return %o, %lse, %max : !q, !l, !l
}

func.func @decode(%q: tensor<1x1x8x16xf32>, %k: tensor<1x700x2x16xf32>, %v: tensor<1x700x2x16xf32>)
    -> (tensor<1x1x8x16xf32>, tensor<1x8x1xf32>, tensor<1x8x1xf32> {burst.name = "max"}) {
  %o, %lse, %max = burst.attention %q, %k, %v
      sequence <@cp, contiguous> strategy <gather_q>
      : (tensor<1x1x8x16xf32>, tensor<1x700x2x16xf32>, tensor<1x700x2x16xf32>)
      -> (tensor<1x1x8x16xf32>, tensor<1x8x1xf32>, tensor<1x8x1xf32>)
  return %o, %lse, %max : tensor<1x1x8x16xf32>, tensor<1x8x1xf32>, tensor<1x8x1xf32>
}
