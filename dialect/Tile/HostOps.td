//===- HostOps.td - tile operations around kernels ---------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_TILE_HOSTOPS_TD
#define BURST_DIALECT_TILE_HOSTOPS_TD

include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialect/Tile/TileDialect.td"

def Tile_LaunchOp : Tile_Op<"launch", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel once per task";
  let description = [{
    Runs tasks 0 to `tasks` - 1 of the kernel, at once, and returns when all are
    done. On processors they are begun in the order of their numbers, or in that of
    `order` (longest first: a permutation of the tasks), and each goes on until it
    is done. The kernel gets the number of its task, then what it reads, what it
    writes and scalars.

    **Constraints:** (C1) the callee is a function with `tile.kernel` of this
    module that takes an index and the operands, and has no results.

    Example:

    ```mlir
    tile.launch @attend[%n] order(%order) reads(%q, %keys) writes(%o) with(%sq)
        : memref<?xi32>, memref<?x?xf32>, memref<?x?xf32>, memref<?x?xf32>, index
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Index:$tasks,
      Optional<MemRefRankOf<[I32], [1]>>:$order, Variadic<AnyMemRef>:$reads,
      Variadic<AnyMemRef>:$writes, Variadic<AnyType>:$scalars);
  let assemblyFormat = [{
    $kernel `` `[` $tasks `]` (`order` `(` $order^ `:` type($order) `)`)?
    `reads` `(` ($reads^ `:` type($reads))? `)`
    `writes` `(` ($writes^ `:` type($writes))? `)`
    `with` `(` ($scalars^ `:` type($scalars))? `)` attr-dict
  }];
}

def Tile_AllocateOp : Tile_Op<"allocate", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "memory of a program";
  let description = [{
    Memory for a buffer, aligned to 64 bytes, until `memref.dealloc` or the end of
    the program. The word says what it is for, by which peak memory is planned and
    counted:

    | | |
    |---|---|
    | `state` | softmax state that no result can hold |
    | `slice` | received slices |
    | `packing` | operands laid out for a kernel |
    | `schedule` | flags, and lists of what is to do |

    An op of its own, because upstream's `memref.alloc` loses what it is for when
    it is folded.

    **Constraints:** (C1) the word is one of these. (C2) a size for each dynamic
    dimension; the buffer is contiguous.

    Example:

    ```mlir
    %slots = tile.allocate "slice" (%n) : memref<2x?x8x128xf32>
    ```
  }];
  let arguments = (ins StrAttr:$memory, Variadic<Index>:$sizes);
  let results = (outs AnyMemRef:$buffer);
  let assemblyFormat = "$memory `(` $sizes `)` attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def Tile_SortOp : Tile_Op<"sort", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "orders tasks, longest first";
  let description = [{
    Writes to `order` the numbers of `costs` by falling cost, equal ones by
    rising number.

    Example: `tile.sort %costs into %order : memref<?xi64>, memref<?xi32>`
  }];
  let arguments = (ins MemRefRankOf<[I64], [1]>:$costs, MemRefRankOf<[I32], [1]>:$order);
  let assemblyFormat = "$costs `into` $order attr-dict `:` type($costs) `,` type($order)";
}

def Tile_ThreadsOp : Tile_Op<"threads", [Pure]> {
  let summary = "how many tasks of a launch run at a time";
  let description = [{
    At most, on the processor that runs the program: so many tasks of which each
    reads a lot again and again share the caches.

    Example: `%n = tile.threads`
  }];
  let results = (outs Index:$count);
  let assemblyFormat = "attr-dict";
}

def Tile_UploadOp : Tile_Op<"upload", [
    AllTypesMatch<["table", "copy"]>, MemoryEffects<[MemRead]>]> {
  let summary = "a copy of the host's memory where kernels read it";
  let description = [{
    Host code makes the lists of what kernels do, and has the tables that masks
    read. The copy has the table's sizes and strides and lives until
    `memref.dealloc` or the end of the program. The table is read some time before
    the end of the program and must not be written any more; it may be deallocated.

    Example: `%copy = tile.upload %table : memref<?x7xindex>`
  }];
  let arguments = (ins AnyMemRef:$table);
  let results = (outs Res<AnyMemRef, "", [MemAlloc, MemWrite]>:$copy);
  let assemblyFormat = "$table attr-dict `:` type($table)";
}

def Tile_AwaitOp : Tile_Op<"await", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "waits for other tasks of a launch";
  let description = [{
    Waits until the element is `value`. Other tasks change it, by
    `memref.atomic_rmw`; what they wrote before that can be read behind this op.

    Only for what tasks change that the launch began earlier: then some task never
    waits, whatever the number of threads. Tasks of GPUs, which begin in any order,
    have no such op.

    **Constraints:** (C1) an index for each dimension of the counters.

    Example:

    ```mlir
    tile.await %passed[%b, %h, %q] is %turn : memref<?x8x?xi32>
    ```
  }];
  let arguments = (ins MemRefOf<[I32]>:$counters, Variadic<Index>:$indices, I32:$value);
  let assemblyFormat = "$counters `[` $indices `]` `is` $value attr-dict `:` type($counters)";
  let hasVerifier = 1;
}

#endif // BURST_DIALECT_TILE_HOSTOPS_TD
