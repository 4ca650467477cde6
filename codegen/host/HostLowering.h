//===- HostLowering.h - one program as calls of the runtime -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What burst-host-to-runtime does to one program. HostToRuntime.cpp has calls
// and memory, and what the program exports, Launches.cpp kernels and their
// launches, Transfers.cpp transfers.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_CODEGEN_HOST_HOSTLOWERING_H
#define BURST_CODEGEN_HOST_HOSTLOWERING_H

#include "codegen/host/Passes.h"
#include "dialect/Tile/Build.h"

#include "burst/program.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace burst::host {

/// Members of burst_table behind size and version, in their order.
enum class Entry : uint8_t {
  Index = 2,
  Allocate,
  Release,
  Sort,
  Launch,
  Start,
  Wait,
  Require,
  Upload,
  LaunchGpu,
  Threads,
  Use,
  Messages,
  End
};

/// Lowers one program.
class HostLowering {
public:
  HostLowering(mlir::func::FuncOp program, mlir::LLVMTypeConverter &types)
      : program(program), module(program->getParentOfType<mlir::ModuleOp>()),
        types(types), b(program.getLoc(), program.getContext()) {
    mlir::MLIRContext *context = program.getContext();
    pointer = mlir::LLVM::LLVMPointerType::get(context);
    i64 = b.getI64Type();
    i32 = b.getI32Type();
  }

  llvm::LogicalResult run();

private:
  // Values in LLVM's types.
  mlir::Value constant(int64_t value) {
    return b.make<mlir::LLVM::ConstantOp>(i64, value);
  }
  mlir::Value number(mlir::Value index) {
    return b.make<mlir::arith::IndexCastOp>(i64, index);
  }
  mlir::Value index(mlir::Value number) {
    return b.make<mlir::arith::IndexCastOp>(b.getIndexType(), number);
  }
  mlir::Value null() { return b.make<mlir::LLVM::ZeroOp>(pointer); }
  mlir::MemRefDescriptor descriptor(mlir::Value buffer) {
    mlir::Type type = types.convertType(buffer.getType());
    return mlir::MemRefDescriptor(
        b.make<mlir::UnrealizedConversionCastOp>(type, buffer).getResult(0));
  }
  mlir::Value asBuffer(mlir::Value descriptor, mlir::MemRefType type) {
    return b.make<mlir::UnrealizedConversionCastOp>(type, descriptor)
        .getResult(0);
  }
  mlir::Value fieldOf(mlir::Type type, mlir::Value address,
                      llvm::ArrayRef<mlir::LLVM::GEPArg> path) {
    return b.make<mlir::LLVM::GEPOp>(pointer, type, address, path);
  }
  /// Memory of the whole program, at its entry: in a loop the stack would grow.
  mlir::Value reserve(mlir::Type type, int64_t count);
  /// A call through the table, of the rank and what is given.
  mlir::Value call(Entry entry, mlir::Type result,
                   llvm::ArrayRef<mlir::Value> arguments);
  /// The address of the first element.
  mlir::Value dataOf(mlir::Value buffer);
  /// In bytes, as LLVM stores an element of an array.
  int64_t bytesOf(mlir::Type element);
  /// Puts a descriptor into memory.
  mlir::Value spill(mlir::Value buffer);

  // The program.
  mlir::Value asStored(mlir::Value scalar);
  void storeScalarsAsBits(mlir::func::FuncOp function);
  void addArguments();
  void makeEntries();
  void makeSegments();
  mlir::LLVM::GlobalOp makeText(const llvm::Twine &name, llvm::StringRef text);
  llvm::LogicalResult lower(mlir::Operation *op);
  void lowerAllocate(tile::AllocateOp op);
  void lowerRequire(ring::RequireOp op);

  // Launches.
  mlir::Value kernelInfo(mlir::func::FuncOp kernel);
  mlir::LLVM::LLVMStructType typeOfUse();
  void writeUse(mlir::Value use, mlir::Value descriptor, mlir::MemRefType type,
                int64_t mode);
  mlir::Value listUses(tile::LaunchOp op, int64_t &count,
                       llvm::function_ref<mlir::Value(int64_t)> descriptorOf);
  void lowerLaunch(tile::LaunchOp op);
  void lowerGpuLaunch(tile::LaunchOp op, mlir::func::FuncOp kernel);
  void lowerUpload(tile::UploadOp op);

  // Transfers.
  mlir::Value listSharded(mlir::ValueRange tensors,
                          llvm::ArrayRef<int64_t> dims, bool isAllToAll);
  mlir::Value placeOf(mlir::Value rank, const RankGroup &group);
  mlir::LLVM::LLVMFuncOp
  makeWriter(const llvm::Twine &name,
             llvm::function_ref<void(mlir::Value owner, mlir::Value extent,
                                     mlir::Value where)>
                 write);
  mlir::Value countsOf(ring::LayoutAttr layout);
  mlir::Value segmentsInGroup(ring::TransferOpInterface op);
  void lowerStart(ring::TransferOpInterface op);
  void carryNumbers();

  mlir::func::FuncOp program;
  mlir::ModuleOp module;
  mlir::LLVMTypeConverter &types;
  tile::LoopBuilder b;
  mlir::Type pointer, i64, i32;
  mlir::Value rank, table;
  int64_t numRequired = 0;
  /// What says how many positions the segments of a shard have.
  llvm::DenseMap<ring::LayoutAttr, mlir::LLVM::LLVMFuncOp> counts;
  /// And where they lie in what so many neighbours have.
  llvm::DenseMap<std::pair<ring::LayoutAttr, int64_t>, mlir::LLVM::LLVMFuncOp>
      inGroup;
};

} // namespace burst::host

#endif // BURST_CODEGEN_HOST_HOSTLOWERING_H
