// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// Named masks and scores, with every form of their parameters and tables.

!q = tensor<2x8x4x16xf32>
!k = tensor<2x6x4x16xf32>
!lse = tensor<2x4x8xf32>

// CHECK-LABEL: func @masks
func.func @masks(%q: !q, %k: !k) {
  // CHECK: mask full :
  %0:2 = burst.attention %q, %k, %k mask full : (!q, !k, !k) -> (!q, !lse)
  // CHECK: mask causal :
  %1:2 = burst.attention %q, %k, %k mask causal : (!q, !k, !k) -> (!q, !lse)
  // CHECK: mask window<left = 1023, right = 0> :
  %2:2 = burst.attention %q, %k, %k mask window<left = 1023, right = 0> : (!q, !k, !k) -> (!q, !lse)
  // CHECK: mask window<left = 512> :
  %3:2 = burst.attention %q, %k, %k mask window<left = 512> : (!q, !k, !k) -> (!q, !lse)
  // CHECK: mask window<right = 3> :
  %4:2 = burst.attention %q, %k, %k mask window<right = 3> : (!q, !k, !k) -> (!q, !lse)
  // CHECK: mask window<left = 1, right = 2> :
  %5:2 = burst.attention %q, %k, %k mask window<right = 2, left = 1> : (!q, !k, !k) -> (!q, !lse)
  // CHECK: mask window<> :
  %6:2 = burst.attention %q, %k, %k mask window<> : (!q, !k, !k) -> (!q, !lse)
  // CHECK: mask window<left = 0, right = 1099511627776> :
  %7:2 = burst.attention %q, %k, %k mask window<left = 0, right = 1099511627776> : (!q, !k, !k) -> (!q, !lse)
  // CHECK: mask prefix<128> :
  %8:2 = burst.attention %q, %k, %k mask prefix<128> : (!q, !k, !k) -> (!q, !lse)
  // CHECK: mask prefix<0> :
  %9:2 = burst.attention %q, %k, %k mask prefix<0> : (!q, !k, !k) -> (!q, !lse)
  // CHECK: mask prefix<1099511627776> :
  %10:2 = burst.attention %q, %k, %k mask prefix<1099511627776> : (!q, !k, !k) -> (!q, !lse)
  return
}

// A list of one name is that name.
//
// CHECK-LABEL: func @lists
func.func @lists(%q: !q, %k: !k) {
  // CHECK: mask causal :
  %0:2 = burst.attention %q, %k, %k mask [causal] : (!q, !k, !k) -> (!q, !lse)
  // CHECK: mask [causal, full, prefix<4>] :
  %1:2 = burst.attention %q, %k, %k mask [causal, full, prefix<4>] : (!q, !k, !k) -> (!q, !lse)
  // CHECK: mask [causal, causal] :
  %2:2 = burst.attention %q, %k, %k mask [causal, causal] : (!q, !k, !k) -> (!q, !lse)
  return
}

// CHECK-LABEL: func @documents
func.func @documents(%q: !q, %k: !k, %tq: tensor<8xi32>, %tk: tensor<6xi32>,
                     %bq: tensor<2x8xi64>, %bk: tensor<?x?xi64>,
                     %i1: tensor<8xi1>, %i: tensor<?xindex>) {
  // One table for queries and keys.
  // CHECK: mask documents(%{{.*}} : tensor<8xi32>) :
  %0:2 = burst.attention %q, %q, %q mask documents(%tq : tensor<8xi32>) : (!q, !q, !q) -> (!q, !lse)
  // One for each.
  // CHECK: mask documents(%{{.*}}, %{{.*}} : tensor<8xi32>, tensor<6xi32>) :
  %1:2 = burst.attention %q, %k, %k mask documents(%tq, %tk : tensor<8xi32>, tensor<6xi32>) : (!q, !k, !k) -> (!q, !lse)
  // CHECK: mask documents(%{{.*}}, %{{.*}} : tensor<2x8xi64>, tensor<?x?xi64>) :
  %2:2 = burst.attention %q, %k, %k mask documents(%bq, %bk : tensor<2x8xi64>, tensor<?x?xi64>) : (!q, !k, !k) -> (!q, !lse)
  // CHECK: mask documents(%{{.*}} : tensor<8xi1>) :
  %3:2 = burst.attention %q, %q, %q mask documents(%i1 : tensor<8xi1>) : (!q, !q, !q) -> (!q, !lse)
  // CHECK: mask documents(%{{.*}} : tensor<?xindex>) :
  %4:2 = burst.attention %q, %k, %k mask documents(%i : tensor<?xindex>) : (!q, !k, !k) -> (!q, !lse)
  // The same name twice: the first takes one table, the last takes the rest.
  // CHECK: mask [documents, documents](%{{.*}}, %{{.*}} : tensor<8xi32>, tensor<8xi1>) :
  %5:2 = burst.attention %q, %q, %q mask [documents, documents](%tq, %i1 : tensor<8xi32>, tensor<8xi1>) : (!q, !q, !q) -> (!q, !lse)
  return
}

// The examples of documents and of alibi.
//
// CHECK-LABEL: func @examples
func.func @examples(%q: tensor<1x4096x32x64xf32>, %ids: tensor<4096xi32>,
                    %slopes: tensor<32xf32>) {
  // CHECK: mask [causal, documents](%{{.*}} : tensor<4096xi32>) score alibi(%{{.*}} : tensor<32xf32>) :
  %o, %lse = burst.attention %q, %q, %q
      mask [causal, documents](%ids : tensor<4096xi32>)
      score alibi(%slopes : tensor<32xf32>)
      : (tensor<1x4096x32x64xf32>, tensor<1x4096x32x64xf32>, tensor<1x4096x32x64xf32>)
      -> (tensor<1x4096x32x64xf32>, tensor<1x32x4096xf32>)
  return
}

// CHECK-LABEL: func @scores
func.func @scores(%q: !q, %k: !k, %h: tensor<4xf32>, %bh: tensor<2x4xbf16>,
                  %ij: tensor<8x6xf64>) {
  // CHECK: score alibi(%{{.*}} : tensor<4xf32>) :
  %0:2 = burst.attention %q, %k, %k score alibi(%h : tensor<4xf32>) : (!q, !k, !k) -> (!q, !lse)
  // CHECK: score alibi(%{{.*}} : tensor<2x4xbf16>) :
  %1:2 = burst.attention %q, %k, %k score alibi(%bh : tensor<2x4xbf16>) : (!q, !k, !k) -> (!q, !lse)
  // CHECK: score softcap<3.000000e+01> :
  %2:2 = burst.attention %q, %k, %k score softcap<30.0> : (!q, !k, !k) -> (!q, !lse)
  // CHECK: score softcap<1.000000e-03> :
  %3:2 = burst.attention %q, %k, %k score softcap<0.001> : (!q, !k, !k) -> (!q, !lse)
  // 2^127, given by its bits.
  // CHECK: score softcap<1.7014118346046923E+38> :
  %4:2 = burst.attention %q, %k, %k score softcap<0x47E0000000000000> : (!q, !k, !k) -> (!q, !lse)
  // CHECK: score bias(%{{.*}} : tensor<8x6xf64>) :
  %5:2 = burst.attention %q, %k, %k score bias(%ij : tensor<8x6xf64>) : (!q, !k, !k) -> (!q, !lse)
  // CHECK: score [alibi, softcap<1.000000e+00>, bias](%{{.*}}, %{{.*}} : tensor<4xf32>, tensor<8x6xf64>) :
  %6:2 = burst.attention %q, %k, %k score [alibi, softcap<1.0>, bias](%h, %ij : tensor<4xf32>, tensor<8x6xf64>) : (!q, !k, !k) -> (!q, !lse)
  // CHECK: score [alibi, alibi](%{{.*}}, %{{.*}} : tensor<4xf32>, tensor<2x4xbf16>) :
  %7:2 = burst.attention %q, %k, %k score [alibi, alibi](%h, %bh : tensor<4xf32>, tensor<2x4xbf16>) : (!q, !k, !k) -> (!q, !lse)
  return
}

// A dimension of size 1 is broadcast; the example of bias.
//
// CHECK-LABEL: func @bias
func.func @bias(%q: tensor<2x512x32x64xf32>, %0: tensor<1x32x512x512xf32>,
                %1: tensor<2x1x512x1xf32>, %2: tensor<1x1x1x1xf16>,
                %3: tensor<?x32x?x512xf32>) {
  // CHECK: score bias(%{{.*}} : tensor<1x32x512x512xf32>)
  // CHECK: score bias(%{{.*}} : tensor<2x1x512x1xf32>)
  // CHECK: score bias(%{{.*}} : tensor<1x1x1x1xf16>)
  // CHECK: score bias(%{{.*}} : tensor<?x32x?x512xf32>)
  %4:2 = burst.attention %q, %q, %q score bias(%0 : tensor<1x32x512x512xf32>)
      : (tensor<2x512x32x64xf32>, tensor<2x512x32x64xf32>, tensor<2x512x32x64xf32>)
      -> (tensor<2x512x32x64xf32>, tensor<2x32x512xf32>)
  %5:2 = burst.attention %q, %q, %q score bias(%1 : tensor<2x1x512x1xf32>)
      : (tensor<2x512x32x64xf32>, tensor<2x512x32x64xf32>, tensor<2x512x32x64xf32>)
      -> (tensor<2x512x32x64xf32>, tensor<2x32x512xf32>)
  %6:2 = burst.attention %q, %q, %q score bias(%2 : tensor<1x1x1x1xf16>)
      : (tensor<2x512x32x64xf32>, tensor<2x512x32x64xf32>, tensor<2x512x32x64xf32>)
      -> (tensor<2x512x32x64xf32>, tensor<2x32x512xf32>)
  %7:2 = burst.attention %q, %q, %q score bias(%3 : tensor<?x32x?x512xf32>)
      : (tensor<2x512x32x64xf32>, tensor<2x512x32x64xf32>, tensor<2x512x32x64xf32>)
      -> (tensor<2x512x32x64xf32>, tensor<2x32x512xf32>)
  return
}

// Outside of an attention, names are attributes of the dialect.
//
// CHECK-LABEL: func @attributes
// CHECK-SAME: a = #burst.full, b = #burst.causal, c = #burst.window<left = 512>,
// CHECK-SAME: d = #burst.prefix<3>, e = #burst.documents, f = #burst.alibi,
// CHECK-SAME: g = #burst.softcap<5.000000e+01>, h = #burst.bias
func.func @attributes() attributes {
    a = #burst.full, b = #burst.causal, c = #burst.window<left = 512>,
    d = #burst.prefix<3>, e = #burst.documents, f = #burst.alibi,
    g = #burst.softcap<50.0>, h = #burst.bias} {
  return
}
