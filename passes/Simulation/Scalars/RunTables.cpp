//===- RunTables.cpp - instructions on tables -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Scalars/Program.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;
using namespace burst;

/// Brings indices into a table, if it has any entry.
static void clamp(MutableArrayRef<int64_t> indices, const Tensor &table) {
  for (auto [index, size] : llvm::zip_equal(indices, table.shape))
    index = std::max<int64_t>(std::min(index, size - 1), 0);
}

Step Program::runTable(const Instruction &in, Frame &frame,
                       Environment &environment) const {
  auto scalar = [&](Slot slot) { return frame.scalars[slot.number]; };
  auto table = [&](uint32_t number) {
    return static_cast<Tensor *>(frame.objects[number].get());
  };
  const OperandList *list =
      in.opcode == Opcode::AllocateTable ? nullptr : &operandLists[in.operands];
  SmallVector<int64_t, 8> indices;
  if (list)
    for (Slot slot : llvm::drop_begin(list->operands))
      indices.push_back(scalar(slot).i);
  auto faultOutside = [&](const char *does) {
    std::string at = llvm::join(
        llvm::map_range(indices, [](int64_t i) { return std::to_string(i); }),
        ", ");
    environment.fault(in.op->getLoc(), Twine(does) +
                                           " a table outside of its bounds, "
                                           "at [" +
                                           at + "]");
    return Step::Failed;
  };
  switch (in.opcode) {
  case Opcode::Extract: {
    Tensor *source = table(list->operands[0].number);
    if (options.clampsIndices)
      clamp(indices, *source);
    int64_t offset = source->offset(indices);
    if (offset < 0 || !source->hasData())
      return faultOutside("reads");
    Slot result = list->results[0];
    if (source->floats.empty())
      frame.scalars[result.number].i = source->integer(offset);
    else
      frame.scalars[result.number].f = source->floats[offset];
    return Step::Done;
  }
  case Opcode::Dim: {
    Tensor *source = table(list->operands[0].number);
    if (indices[0] < 0 ||
        indices[0] >= static_cast<int64_t>(source->shape.size())) {
      environment.fault(in.op->getLoc(),
                        "asks for a dimension that is not there");
      return Step::Failed;
    }
    frame.scalars[list->results[0].number].i = source->shape[indices[0]];
    return Step::Done;
  }
  case Opcode::TableRange: {
    ArrayRef<int64_t> all(indices);
    auto [least, most] = table(list->operands[0].number)
                             ->range(all.take_front(all.size() / 2),
                                     all.drop_front(all.size() / 2));
    frame.scalars[list->results[0].number].i = least;
    frame.scalars[list->results[1].number].i = most;
    return Step::Done;
  }
  case Opcode::Contribute: {
    Tensor *gradient = table(list->operands[0].number);
    if (!gradient)
      return Step::Done;
    if (options.clampsIndices)
      clamp(indices, *gradient);
    int64_t offset = gradient->offset(indices);
    if (offset < 0)
      return faultOutside("contributes to");
    gradient->floats[offset] += frame.scalars[in.a].f;
    return Step::Done;
  }
  case Opcode::AllocateTable: {
    auto type = cast<RankedTensorType>(in.op->getResult(0).getType());
    auto fresh =
        std::make_shared<Tensor>(type.getShape(), type.getElementType());
    if (isa<FloatType>(type.getElementType()))
      fresh->floats.resize(fresh->size());
    else if (type.getElementType().isInteger(1))
      fresh->bits.resize(fresh->size());
    else
      fresh->ints.resize(fresh->size());
    frame.objects[in.dst] = std::move(fresh);
    return Step::Done;
  }
  default:
    llvm_unreachable("no op on tables");
  }
}

/// Row-major offset of the indices in operands 1 and on, or -1 where one is out
/// of bounds.
int64_t Program::offsetOf(const OperandList &list, const Tensor &table,
                          const Frame &frame) const {
  int64_t offset = 0;
  const Slot *operand = list.operands.data();
  for (int64_t extent : table.shape) {
    int64_t index = frame.scalars[(++operand)->number].i;
    if (index < 0 || index >= extent)
      return -1;
    offset = offset * extent + index;
  }
  return offset;
}

/// Reads from a table; false where it is not read inside of its bounds.
bool Program::extract(const Instruction &in, Frame &frame) const {
  const OperandList &list = operandLists[in.operands];
  const auto &table = *static_cast<const Tensor *>(frame.objects[in.a].get());
  int64_t offset = offsetOf(list, table, frame);
  if (offset < 0)
    return false;
  Scalar &result = frame.scalars[in.dst];
  if (!table.ints.empty())
    result.i = table.ints[offset];
  else if (!table.bits.empty())
    result.i = table.integer(offset);
  else if (!table.floats.empty())
    result.f = table.floats[offset];
  else
    return false;
  return true;
}

/// Writes to a table that the program makes: its loops stay inside of it.
void Program::store(const Instruction &in, Frame &frame) const {
  auto &table = *static_cast<Tensor *>(frame.objects[in.a].get());
  int64_t offset = offsetOf(operandLists[in.operands], table, frame);
  Scalar value = frame.scalars[in.b];
  if (!table.bits.empty())
    table.bits[offset] = value.i != 0;
  else if (table.floats.empty())
    table.ints[offset] = value.i;
  else
    table.floats[offset] = value.f;
}
