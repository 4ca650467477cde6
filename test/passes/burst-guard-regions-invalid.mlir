// RUN: burst-opt %s --burst-guard-regions --split-input-file --verify-diagnostics

!q = tensor<1x64x2x8xf32>
!l = tensor<1x2x64xf32>
func.func @f(%q: !q) -> (!q, !l) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %zero = arith.subi %j, %j : index
        %c0 = arith.constant 0 : index
        // expected-error @below {{divides by 0 for every pair; wanted a divisor that is not always 0}}
        %x = arith.divui %i, %c0 : index
        %keep = arith.cmpi eq, %x, %zero : index
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

!q = tensor<1x64x2x8xf32>
!l = tensor<1x2x64xf32>
func.func @f(%q: !q) -> (!q, !l) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %c64 = arith.constant 64 : index
        %amount = arith.addi %i, %c64 : index
        // expected-error @below {{shifts all 64 bits out for every pair; wanted an amount that is not always 64 or more}}
        %x = arith.shrui %j, %amount : index
        %keep = arith.cmpi eq, %x, %i : index
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

!q = tensor<1x64x2x8xf32>
!l = tensor<1x2x64xf32>
func.func @f(%q: !q) -> (!q, !l) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        %c = arith.constant 576.0 : f32
        // expected-error @below {{converts a constant that 'i8' cannot hold: 5.760000e+02}}
        %n = arith.fptosi %c : f32 to i8
        %x = arith.sitofp %n : i8 to f32
        burst.yield %x : f32
      } : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

!q = tensor<1x64x2x8xf32>
!l = tensor<1x2x64xf32>
func.func @f(%q: !q, %t: tensor<5xi32>) -> (!q, !l) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %table = %t : tensor<5xi32>) {
        %c5 = arith.constant 5 : index
        %c7 = arith.constant 7 : index
        %rest = arith.remui %i, %c7 : index
        %at = arith.addi %rest, %c5 : index
        // expected-error @below {{reads outside of its table for every pair: dimension 0 has 5 entries, read at 5 or more}}
        %x = tensor.extract %table[%at] : tensor<5xi32>
        %c0 = arith.constant 0 : i32
        %keep = arith.cmpi eq, %x, %c0 : i32
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}
