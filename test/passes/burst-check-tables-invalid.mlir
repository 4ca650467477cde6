// RUN: burst-opt %s --split-input-file --verify-diagnostics --burst-expand-names --burst-partition --burst-check-tables

// A batch.
shard.grid @cp(shape = 4)
!q = tensor<2x64x8x16xf32>
!l = tensor<2x8x64xf32>
func.func @f(%q: !q, %t: tensor<1xi1> {burst.name = "t"}) -> !q {
  // expected-error @below {{reads t outside of its bounds: dimension 0 has 1 entries, wanted at least 2}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %a = %t : tensor<1xi1>) {
        // expected-note @below {{it is read here}}
        %keep = tensor.extract %a[%b] : tensor<1xi1>
        burst.yield %keep : i1
      }
      sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

// A head of the queries, in the second dimension.
shard.grid @cp(shape = 4)
!q = tensor<2x64x8x16xf32>
!l = tensor<2x8x64xf32>
func.func @f(%q: !q, %t: tensor<2x2xi1> {burst.name = "t"}) -> !q {
  // expected-error @below {{reads t outside of its bounds: dimension 1 has 2 entries, wanted at least 8}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %a = %t : tensor<2x2xi1>) {
        // expected-note @below {{it is read here}}
        %keep = tensor.extract %a[%b, %h] : tensor<2x2xi1>
        burst.yield %keep : i1
      }
      sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

// A query.
shard.grid @cp(shape = 4)
!q = tensor<2x64x8x16xf32>
!l = tensor<2x8x64xf32>
func.func @f(%q: !q, %t: tensor<4xi1> {burst.name = "t"}) -> !q {
  // expected-error @below {{reads t outside of its bounds: dimension 0 has 4 entries, wanted at least 64}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %a = %t : tensor<4xi1>) {
        // expected-note @below {{it is read here}}
        %keep = tensor.extract %a[%i] : tensor<4xi1>
        burst.yield %keep : i1
      }
      sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

// A key, one too few.
shard.grid @cp(shape = 4)
!q = tensor<2x64x8x16xf32>
!l = tensor<2x8x64xf32>
func.func @f(%q: !q, %t: tensor<63xi1> {burst.name = "t"}) -> !q {
  // expected-error @below {{reads t outside of its bounds: dimension 0 has 63 entries, wanted at least 64}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %a = %t : tensor<63xi1>) {
        // expected-note @below {{it is read here}}
        %keep = tensor.extract %a[%j] : tensor<63xi1>
        burst.yield %keep : i1
      }
      sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

// A select around the reading does not guard it.
shard.grid @cp(shape = 4)
!q = tensor<2x64x8x16xf32>
!l = tensor<2x8x64xf32>
func.func @f(%q: !q, %t: tensor<4xi1> {burst.name = "t"}) -> !q {
  // expected-error @below {{reads t outside of its bounds: dimension 0 has 4 entries, wanted at least 64}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %a = %t : tensor<4xi1>) {
        %c4 = arith.constant 4 : index
        %no = arith.constant false
        // expected-note @below {{it is read here}}
        %read = tensor.extract %a[%i] : tensor<4xi1>
        %first = arith.cmpi ult, %i, %c4 : index
        %keep = arith.select %first, %read, %no : i1
        burst.yield %keep : i1
      }
      sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

// Blocks of 16.
shard.grid @cp(shape = 4)
!q = tensor<2x64x8x16xf32>
!l = tensor<2x8x64xf32>
func.func @f(%q: !q, %t: tensor<4x3xi1> {burst.name = "t"}) -> !q {
  // expected-error @below {{reads t outside of its bounds: dimension 1 has 3 entries, wanted at least 4}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %a = %t : tensor<4x3xi1>) {
        %c16 = arith.constant 16 : i64
        %i64 = arith.index_cast %i : index to i64
        %block = arith.divsi %i64, %c16 : i64
        %bi = arith.index_cast %block : i64 to index
        %cj = arith.constant 16 : index
        %bj = arith.divui %j, %cj : index
        // expected-note @below {{it is read here}}
        %keep = tensor.extract %a[%bi, %bj] : tensor<4x3xi1>
        burst.yield %keep : i1
      }
      sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

// An index that goes below 0.
shard.grid @cp(shape = 4)
!q = tensor<2x64x8x16xf32>
!l = tensor<2x8x64xf32>
func.func @f(%q: !q, %t: tensor<200xi1> {burst.name = "t"}) -> !q {
  // expected-error @below {{reads t outside of its bounds: dimension 0 has 200 entries, read from -1}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %a = %t : tensor<200xi1>) {
        %c1 = arith.constant 1 : index
        %at = arith.subi %i, %c1 : index
        // expected-note @below {{it is read here}}
        %keep = tensor.extract %a[%at] : tensor<200xi1>
        burst.yield %keep : i1
      }
      sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

// A constant.
shard.grid @cp(shape = 4)
!q = tensor<2x64x8x16xf32>
!l = tensor<2x8x64xf32>
func.func @f(%q: !q, %t: tensor<4xi1> {burst.name = "t"}) -> !q {
  // expected-error @below {{reads t outside of its bounds: dimension 0 has 4 entries, wanted at least 5}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %a = %t : tensor<4xi1>) {
        %four = arith.constant 4 : index
        // expected-note @below {{it is read here}}
        %keep = tensor.extract %a[%four] : tensor<4xi1>
        burst.yield %keep : i1
      }
      sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

// By what another table holds, of which at least one is read.
shard.grid @cp(shape = 4)
!q = tensor<2x64x8x16xf32>
!l = tensor<2x8x64xf32>
func.func @f(%q: !q, %ids: tensor<64xindex>, %t: tensor<0xi1> {burst.name = "t"}) -> !q {
  // expected-error @below {{reads t outside of its bounds: dimension 0 has 0 entries, wanted at least 1}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %ti = %ids : tensor<64xindex>, %a = %t : tensor<0xi1>) {
        %id = tensor.extract %ti[%j] : tensor<64xindex>
        // expected-note @below {{it is read here}}
        %keep = tensor.extract %a[%id] : tensor<0xi1>
        burst.yield %keep : i1
      }
      sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}
