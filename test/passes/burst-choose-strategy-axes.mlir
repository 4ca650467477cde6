// On a grid of several axes bytes are told by axis: a message goes along the first
// axis in which its sender and its receiver differ. The remark of what is pinned
// says what a rank sends on average, and the plan of the program what each sends.

// RUN: split-file %s %t
// DEFINE: %{name} =
// DEFINE: %{plan} = burst-opt --burst-to-ring --ring-plan --remarks-filter=strategy -o /dev/null 2>&1 | tr -d ' \n'
// DEFINE: %{forward} = sed 's/<ring_kv>/<%{name}>/' %t/forward.mlir | %{plan} | FileCheck %s
// DEFINE: %{backward} = sed 's/<ring_kv>/<%{name}>/' %t/backward.mlir | %{plan} | FileCheck %s

// A rank has 8 positions: keys and values of 512 bytes, which take seven hops. In one
// ring over both axes the last rank of each node sends to the other node in each of
// them, and the others never do. Backward gradients of 512 bytes travel, too.
//
// REDEFINE: %{name} = ring_kv
// RUN: %{forward} --check-prefix=RING
// RING: pinned|Category:strategy|Function=f|bytes=3584,bytes_axis_0=896,bytes_axis_1=2688,compute_us=
// RING: "bytes_sent_by_axis":[0,3584],
// RING: "bytes_sent_by_axis":[0,3584],
// RING: "bytes_sent_by_axis":[0,3584],
// RING: "bytes_sent_by_axis":[3584,0],
// RING: "bytes_sent_by_axis":[0,3584],
// RUN: %{backward} --check-prefix=RINGBACK
// RINGBACK: pinned|Category:strategy|Function=f|bytes=7168,bytes_axis_0=1792,bytes_axis_1=5376,compute_us=

// Of two rings the outer one has one hop, the inner one three in each turn of it.
//
// REDEFINE: %{name} = double_ring_kv
// RUN: %{forward} --check-prefix=DOUBLE
// DOUBLE: pinned|Category:strategy|Function=f|bytes=3584,bytes_axis_0=512,bytes_axis_1=3072,compute_us=
// RUN: %{backward} --check-prefix=DOUBLEBACK
// DOUBLEBACK: pinned|Category:strategy|Function=f|bytes=7168,bytes_axis_0=1024,bytes_axis_1=6144,compute_us=

// In all others, too, every rank sends as much, since there is no mask.
//
// REDEFINE: %{name} = double_ring_kv
// RUN: %{forward} --check-prefix=EVEN
// RUN: %{backward} --check-prefix=EVEN
// REDEFINE: %{name} = double_ring_q
// RUN: %{forward} --check-prefix=EVEN
// RUN: %{backward} --check-prefix=EVEN
// REDEFINE: %{name} = ulysses on [1], ring_kv on [0]
// RUN: %{forward} --check-prefix=EVEN
// RUN: %{backward} --check-prefix=EVEN
// REDEFINE: %{name} = ulysses on [1], ring_q on [0]
// RUN: %{forward} --check-prefix=EVEN
// RUN: %{backward} --check-prefix=EVEN
// REDEFINE: %{name} = ulysses
// RUN: %{forward} --check-prefix=EVEN
// RUN: %{backward} --check-prefix=EVEN
// REDEFINE: %{name} = all_gather
// RUN: %{forward} --check-prefix=EVEN
// RUN: %{backward} --check-prefix=EVEN
// REDEFINE: %{name} = gather_q
// RUN: %{forward} --check-prefix=EVEN
// RUN: %{backward} --check-prefix=EVEN
// REDEFINE: %{name} = direct_kv
// RUN: %{forward} --check-prefix=EVEN
// RUN: %{backward} --check-prefix=EVEN
// REDEFINE: %{name} = direct_q
// RUN: %{forward} --check-prefix=EVEN
// RUN: %{backward} --check-prefix=EVEN
// EVEN: pinned|Category:strategy|Function=f|bytes={{[0-9]+}},bytes_axis_0=[[#ON0:]],bytes_axis_1=[[#ON1:]],compute_us=
// EVEN-COUNT-8: "bytes_sent_by_axis":{{\[}}[[#ON0]],[[#ON1]]],

// One axis of several ranks is nothing to tell.
//
// RUN: sed 's/2x4/1x4/' %t/forward.mlir | %{plan} | FileCheck %s --check-prefix=ONE --implicit-check-not=axis
// ONE: pinned|Category:strategy|Function=f|bytes={{[0-9]+}},compute_us=
// ONE: "bytes_sent":

// An axis over which heads are sharded has nothing of it, and what one strategy
// cannot be had along says why.
//
// RUN: burst-opt %t/heads.mlir --burst-to-ring --remarks-filter=strategy -verify-diagnostics -o /dev/null

//--- forward.mlir
shard.grid @mesh(shape = 2x4)

!q = tensor<1x64x8x4xf32>
!k = tensor<1x64x2x4xf32>
!l = tensor<1x8x64xf32>

func.func @f(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@mesh, zigzag> strategy <ring_kv>
      : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

//--- backward.mlir
shard.grid @mesh(shape = 2x4)

!q = tensor<1x64x8x4xf32>
!k = tensor<1x64x2x4xf32>
!l = tensor<1x8x64xf32>

func.func @f(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, %do: !q) -> (!q, !k, !k) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      sequence <@mesh, zigzag> strategy <ring_kv> : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

//--- heads.mlir
shard.grid @mesh(shape = 2x2x3)

!q = tensor<1x48x8x4xf32>
!l = tensor<1x8x48xf32>

func.func @heads(%q: !q) -> (!q, !l) {
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=5120, bytes_axis_0=0, bytes_axis_1=1707, bytes_axis_2=3413, compute_us=0.0, exposed_us=50.1, hidden_us=0.0, peak_bytes=3328, strategy=ring_kv}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=6400, bytes_axis_0=0, bytes_axis_1=2133, bytes_axis_2=4267, compute_us=0.0, exposed_us=70.1, hidden_us=0.0, peak_bytes=5376, strategy=ring_q}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=5120, bytes_axis_0=0, bytes_axis_1=1024, bytes_axis_2=4096, compute_us=0.0, exposed_us=50.1, hidden_us=0.0, peak_bytes=5376, strategy=double_ring_kv}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=6400, bytes_axis_0=0, bytes_axis_1=1280, bytes_axis_2=5120, compute_us=0.0, exposed_us=100.1, hidden_us=0.0, peak_bytes=9472, strategy=double_ring_q}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=5120, bytes_axis_0=0, bytes_axis_1=1707, bytes_axis_2=3413, compute_us=0.0, exposed_us=30.1, hidden_us=0.0, peak_bytes=5376, strategy=bi_ring_kv}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=6400, bytes_axis_0=0, bytes_axis_1=2901, bytes_axis_2=3499, compute_us=0.0, exposed_us=50.1, hidden_us=0.0, peak_bytes=9472, strategy=bi_ring_q}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=5120, bytes_axis_0=0, bytes_axis_1=3072, bytes_axis_2=2048, compute_us=0.0, exposed_us=50.1, hidden_us=0.0, peak_bytes=3328, strategy=direct_kv}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=6400, bytes_axis_0=0, bytes_axis_1=3840, bytes_axis_2=2560, compute_us=0.0, exposed_us=70.1, hidden_us=0.0, peak_bytes=4608, strategy=direct_q}}
  // expected-remark @below {{[Passed] chosen | Category:strategy | Function=heads | bytes=5120, bytes_axis_0=0, bytes_axis_1=3072, bytes_axis_2=2048, compute_us=0.0, exposed_us=14.1, hidden_us=0.0, peak_bytes=7296, strategy=all_gather}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=6400, bytes_axis_0=0, bytes_axis_1=3840, bytes_axis_2=2560, compute_us=0.0, exposed_us=64.1, hidden_us=0.0, peak_bytes=10496, strategy=gather_q}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=2987, bytes_axis_0=0, bytes_axis_1=1536, bytes_axis_2=1451, compute_us=0.0, exposed_us=32.1, hidden_us=0.0, peak_bytes=6144, strategy="ulysses on [2], ring_kv on [1]"}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=3371, bytes_axis_0=0, bytes_axis_1=1920, bytes_axis_2=1451, compute_us=0.0, exposed_us=42.1, hidden_us=0.0, peak_bytes=10752, strategy="ulysses on [2], ring_q on [1]"}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=2987, bytes_axis_0=0, bytes_axis_1=1536, bytes_axis_2=1451, compute_us=0.0, exposed_us=32.1, hidden_us=0.0, peak_bytes=6144, strategy="ulysses on [2], direct_kv on [1]"}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=3371, bytes_axis_0=0, bytes_axis_1=1920, bytes_axis_2=1451, compute_us=0.0, exposed_us=42.1, hidden_us=0.0, peak_bytes=9600, strategy="ulysses on [2], direct_q on [1]"}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=2987, bytes_axis_0=0, bytes_axis_1=1536, bytes_axis_2=1451, compute_us=0.0, exposed_us=32.1, hidden_us=0.0, peak_bytes=7488, strategy="ulysses on [2], all_gather on [1]"}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=3371, bytes_axis_0=0, bytes_axis_1=1920, bytes_axis_2=1451, compute_us=0.0, exposed_us=42.1, hidden_us=0.0, peak_bytes=10752, strategy="ulysses on [2], gather_q on [1]"}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=heads | bytes=1813, bytes_axis_0=0, bytes_axis_1=1088, bytes_axis_2=725, compute_us=0.0, exposed_us=28.0, hidden_us=0.0, peak_bytes=4416, strategy=ulysses}}
  // expected-remark @below {{[Analysis] unsupported | Category:strategy | Function=heads | Reason="needs a sequence over two axes, as in `sequence <@grid[0, 1], zigzag>`, not 1", strategy="ulysses on [2], double_ring_kv on [1]"}}
  // expected-remark @below {{[Analysis] unsupported | Category:strategy | Function=heads | Reason="needs a sequence over two axes, as in `sequence <@grid[0, 1], zigzag>`, not 1", strategy="ulysses on [2], double_ring_q on [1]"}}
  %o, %lse = burst.attention %q, %q, %q sequence <@mesh[1, 2], contiguous> heads <@mesh[0]>
      : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}
