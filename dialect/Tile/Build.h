//===- Build.h - short names for emitting loops over memory -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_TILE_BUILD_H
#define BURST_DIALECT_TILE_BUILD_H

#include "dialect/Tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace burst::tile {

/// Emits scalar arithmetic, loops and accesses to memory.
class LoopBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  template <typename Op, typename... Args>
  auto make(Args &&...args) {
    return Op::create(*this, std::forward<Args>(args)...);
  }

  Value index(int64_t value) {
    return make<mlir::arith::ConstantIndexOp>(value);
  }
  Value truth(bool value) { return make<mlir::arith::ConstantIntOp>(value, 1); }
  Value add(Value a, Value b) { return make<mlir::arith::AddIOp>(a, b); }
  Value sub(Value a, Value b) { return make<mlir::arith::SubIOp>(a, b); }
  Value mul(Value a, Value b) { return make<mlir::arith::MulIOp>(a, b); }
  Value div(Value a, Value b) { return make<mlir::arith::DivUIOp>(a, b); }
  Value rem(Value a, Value b) { return make<mlir::arith::RemUIOp>(a, b); }
  Value min(Value a, Value b) { return make<mlir::arith::MinSIOp>(a, b); }
  Value max(Value a, Value b) { return make<mlir::arith::MaxSIOp>(a, b); }
  Value both(Value a, Value b) { return make<mlir::arith::AndIOp>(a, b); }
  Value ceilDiv(Value a, int64_t b) {
    return div(add(a, index(b - 1)), index(b));
  }
  Value compare(mlir::arith::CmpIPredicate predicate, Value a, Value b) {
    return make<mlir::arith::CmpIOp>(predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return make<mlir::arith::SelectOp>(condition, a, b);
  }
  Value dim(Value buffer, int64_t d) {
    auto type = mlir::cast<mlir::MemRefType>(buffer.getType());
    if (!type.isDynamicDim(d))
      return index(type.getDimSize(d));
    return make<mlir::memref::DimOp>(buffer, d);
  }
  Value load(Value buffer, ValueRange indices) {
    return make<mlir::memref::LoadOp>(buffer, indices);
  }
  void store(Value value, Value buffer, ValueRange indices) {
    make<mlir::memref::StoreOp>(value, buffer, indices);
  }
  Value alloca(mlir::MemRefType type) {
    return make<mlir::memref::AllocaOp>(type, ValueRange(),
                                        getI64IntegerAttr(64));
  }

  using CarryingBody =
      llvm::function_ref<llvm::SmallVector<Value>(Value, ValueRange)>;
  /// A loop over [begin, end) that carries what `body` gives.
  mlir::scf::ForOp loop(Value begin, Value end, int64_t step, ValueRange inits,
                        CarryingBody body) {
    auto loop = make<mlir::scf::ForOp>(begin, end, index(step), inits);
    InsertionGuard guard(*this);
    setInsertionPointToStart(loop.getBody());
    llvm::SmallVector<Value> yields =
        body(loop.getInductionVar(), loop.getRegionIterArgs());
    if (!inits.empty())
      make<mlir::scf::YieldOp>(yields);
    return loop;
  }
  mlir::scf::ForOp loop(Value end, ValueRange inits, CarryingBody body) {
    return loop(index(0), end, 1, inits, body);
  }
  void loop(Value begin, Value end, int64_t step,
            llvm::function_ref<void(Value)> body) {
    loop(begin, end, step, {}, [&](Value i, ValueRange) {
      body(i);
      return llvm::SmallVector<Value>();
    });
  }
  void loop(Value end, llvm::function_ref<void(Value)> body) {
    loop(index(0), end, 1, body);
  }
  /// Runs `body` where the condition holds, and `other` where it does not.
  void when(Value condition, llvm::function_ref<void()> body,
            llvm::function_ref<void()> other = nullptr) {
    auto choice = make<mlir::scf::IfOp>(condition, /*withElse=*/!!other);
    InsertionGuard guard(*this);
    setInsertionPointToStart(choice.thenBlock());
    body();
    if (!other)
      return;
    setInsertionPointToStart(choice.elseBlock());
    other();
  }
};

} // namespace burst::tile

#endif // BURST_DIALECT_TILE_BUILD_H
