//===- EmitHopper.cpp - what warp-specialized kernels have ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Emitter.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace burst;
using namespace burst::cuda;
using llvm::formatv;

void Emitter::placePipelines() {
  SmallVector<PipelineType> types;
  SmallVector<Operation *> ops;
  SmallVector<Place> found;
  kernel.walk([&](PipelineOp op) {
    types.push_back(op.getPipeline().getType());
    ops.push_back(op);
  });
  sharedBytes = cuda::placePipelines(types, &found);
  for (auto [op, place] : llvm::zip_equal(ops, found))
    places[op] = place;
}

LogicalResult Emitter::emit(PipelineOp op) {
  PipelineType type = op.getPipeline().getType();
  Place place = places.lookup(op);
  line() << formatv("Pipeline<{0}<{1}, {2}>, {3}> {4}{{sharedMemory() + {5}, "
                    "sharedMemory() + {6}, Group::Count};\n",
                    type.isOfMaskBits() ? "SharedMaskBits" : "SharedTile",
                    type.getTile().getDimSize(0), type.getTile().getDimSize(1),
                    type.getStages(), names.define(op, "pipeline"),
                    place.stages, place.barriers);
  return success();
}

LogicalResult Emitter::emit(WarpSpecializeOp op) {
  auto body = [&](Region &region) {
    ++depth;
    LogicalResult result = emit(region.front());
    --depth;
    return result;
  };
  line() << "if (isProducer<Group>()) {\n";
  ++depth;
  line() << formatv("giveRegisters<{0}>();\n", op.getProducerRegisters());
  if (Region &maskWarps = op.getMaskWarps(); !maskWarps.empty()) {
    line() << "if (isMaskWarp<Group>()) {\n";
    if (failed(body(maskWarps)))
      return failure();
    line() << "} else if (isElected<Group>()) {\n";
  } else {
    line() << "if (isElected<Group>()) {\n";
  }
  if (failed(body(op.getProducer())))
    return failure();
  line() << "}\n";
  --depth;
  line() << "} else {\n";
  ++depth;
  line() << formatv("takeRegisters<{0}>();\n", op.getConsumerRegisters());
  // Without ping-pong scheduling outputs leave no register for it through the
  // loop.
  op.getConsumers().walk([&](PingPongBeginOp) { warpgroup = "warpgroup"; });
  if (warpgroup == "warpgroup")
    line() << "const int warpgroup = uniformWarpgroup();\n";
  --depth;
  if (failed(body(op.getConsumers())))
    return failure();
  line() << "}\n";
  return success();
}

/// How many products may be under way: those begun behind the one that is
/// awaited.
LogicalResult Emitter::emit(AwaitOp op) {
  auto begun = op.getToken().getDefiningOp<MultiplyAsyncOp>();
  int64_t pending = 0;
  for (Operation *other = begun->getNextNode(); other != op;
       other = other->getNextNode()) {
    if (other->walk([](MultiplyAsyncOp) { return WalkResult::interrupt(); })
            .wasInterrupted()) {
      if (!isa<MultiplyAsyncOp>(other))
        return op.emitOpError(
            "has products before it in a region of their own");
      ++pending;
    }
  }
  StringRef c = name(begun.getC());
  line() << formatv("await<{0}>({1});\n", pending, c);
  if (!begun.getFactor().isExactlyValue(1.0) && unitOf(begun.getC()) == "1.f")
    line() << formatv("scale({0}, {1});\n", c,
                      scalars.literal(begun.getFactor(), /*isDouble=*/false));
  return success();
}

LogicalResult Emitter::emitHopper(Operation *op) {
  auto stage = [&](auto op, StringRef how) -> LogicalResult {
    line() << formatv("const auto {0} = {1}.{2}();\n",
                      names.define(op.getStage(), "stage"),
                      name(op.getPipeline()), how);
    return success();
  };
  auto step = [&](auto op, StringRef how) -> LogicalResult {
    line() << formatv("{0}.{1}();\n", name(op.getPipeline()), how);
    return success();
  };
  auto pingPong = [&](StringRef how) -> LogicalResult {
    line() << formatv("PingPong<Group>::{0}();\n", how);
    return success();
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ProducerAcquireOp op) { return stage(op, "producerAcquire"); })
      .Case([&](ConsumerWaitOp op) { return stage(op, "consumerWait"); })
      .Case([&](ProducerCommitOp op) { return step(op, "producerCommit"); })
      .Case([&](ConsumerReleaseOp op) { return step(op, "consumerRelease"); })
      .Case([&](TmaLoadOp op) -> LogicalResult {
        line() << formatv("tmaLoad({0}, {1});\n", name(op.getStage()),
                          name(op.getView()));
        return success();
      })
      .Case([&](ClearOp op) -> LogicalResult {
        line() << formatv("clear<Group>({0}, {1});\n", name(op.getStage()),
                          name(op.getCount()));
        return success();
      })
      .Case([&](ApplyMaskBitsOp op) -> LogicalResult {
        line() << formatv("applyMaskBits({0}, {1});\n", name(op.getS()),
                          name(op.getStage()));
        return success();
      })
      .Case([&](RoundOp op) -> LogicalResult {
        line() << formatv("round({0}, {1});\n", name(op.getS()),
                          name(op.getWeights()));
        return success();
      })
      .Case([&](PingPongBeginOp) { return pingPong("begin"); })
      .Case([&](PingPongWaitOp) { return pingPong("wait"); })
      .Case([&](PingPongSignalOp) { return pingPong("signal"); })
      .Case([&](PingPongEndOp) { return pingPong("end"); })
      .Case([&](MultiplyAsyncOp op) -> LogicalResult {
        StringRef a = name(op.getA()), b = name(op.getB()), c = name(op.getC());
        line() << "// " << c << (op.getAccumulate() ? " += " : " = ") << a
               << ' ' << b << (op.getByRows() ? "^T\n" : "\n");
        line() << formatv(
            "{0}<{1}, {2}>({3}, {4}, {5}{6});\n",
            op.getByRows() ? "beginMultiplyTransposed" : "beginMultiply",
            scalars.elementName(typeOf(op.getB()).getElementType()),
            op.getAccumulate(), c, a, b,
            op.getByRows() ? (", " + warpgroup).str() : "");
        return success();
      })
      .Default([](Operation *op) -> LogicalResult {
        return op->emitOpError("has no text for GPUs");
      });
}
