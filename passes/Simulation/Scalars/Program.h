//===- Program.h - functions and regions as instructions --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scalar code of MLIR (arith, math, scf, tensor tables) flattened to
// instructions over numbered slots, so that a mask can be evaluated for every
// pair of positions, and the program of a rank for every rank of a large grid.
// Ops on distributed tensors are left to the caller, see Environment.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_SIMULATION_SCALARS_PROGRAM_H
#define BURST_PASSES_SIMULATION_SCALARS_PROGRAM_H

#include "passes/Simulation/Scalars/Tensor.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Region.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <string>

namespace burst {

/// A value of index, integer or float type. Integers are sign-extended from
/// their width, so a true i1 is -1; floats are f64 whatever their type. What is
/// computed in 16 bits is rounded to these, and in masks what is computed in
/// f32 to f32; in scores f32 is rounded to by arith.truncf only.
union Scalar {
  int64_t i;
  double f;
};

/// `value` rounded to the nearest number of a float type, ties to even.
double roundTo(double value, mlir::Type type);

/// Of a table that a program makes or is given as a constant; P^2 entries of
/// four for 2048 ranks.
inline constexpr int64_t maxTableElements = int64_t{1} << 24;

/// The table that a constant is.
TensorRef makeTable(mlir::DenseIntOrFPElementsAttr dense);

/// Anything that is not a scalar: a table, a shard, a token.
using Object = std::shared_ptr<void>;

/// Where and why an evaluation stopped.
struct Fault {
  mlir::Location loc;
  std::string message;
};

/// What a value of the program is held in.
struct Slot {
  uint32_t number = 0;
  bool isScalar = true;
  bool operator==(const Slot &) const = default;
};

/// In this order: what makes a scalar of scalars (up to Copy), moves of
/// objects, control flow, and what has a list of operands.
enum class Opcode : uint8_t {
  // Integers, wrapped to `width`.
  Add,
  Sub,
  Mul,
  DivS,
  DivU,
  CeilDivS,
  CeilDivU,
  FloorDivS,
  RemS,
  RemU,
  And,
  Or,
  Xor,
  Shl,
  ShrS,
  ShrU,
  MinS,
  MaxS,
  MinU,
  MaxU,
  Equal,
  NotEqual,
  LessS,
  LessEqualS,
  LessU,
  LessEqualU,
  Select,
  ExtendU,
  Wrap,
  AbsI,
  // Floats.
  AddF,
  SubF,
  MulF,
  DivF,
  RemF,
  NegF,
  MinimumF,
  MaximumF,
  MinNumF,
  MaxNumF,
  FmaF,
  CompareF,
  SignedToF,
  UnsignedToF,
  FToSigned,
  FToUnsigned,
  RoundF,
  BitsToF,
  FToBits,
  UnaryF,
  BinaryF,
  PowerI,
  // Moves and control flow; targets are instruction numbers in `imm`.
  Constant,
  Copy,
  ConstantObject,
  CopyObject,
  MoveObject,
  ReleaseObject,
  Jump,
  JumpIfNot,
  JumpUnlessLess,
  JumpUnlessLessU,
  CheckStep,
  NextTurn, ///< of a loop: dst += c, and back where it is below b
  NextTurnU,
  Return,
  RunLanes, ///< tries to run a loop's turns together; then jumps behind it
  // Tables.
  Extract,
  Dim,
  TableRange,
  Segment,
  AllocateTable,
  StoreTable,
  Contribute,
  // The environment's.
  Call,
  External,
};

struct Instruction {
  Opcode opcode;
  uint8_t width = 64; ///< of integers; a predicate, or a float type
  uint32_t dst = 0;
  uint32_t a = 0, b = 0, c = 0;
  union {
    Scalar value;
    int64_t i;
    double f;
    double (*unary)(double);
    double (*binary)(double, double);
  } imm{};
  /// Extract, Segment, Call, External: index into Program::operandLists.
  uint32_t operands = 0;
  mlir::Operation *op = nullptr;
};

class Program;

/// What is held of operands that instructions are run for at once.
struct LaneMemory {
  /// All segments of a layout that are named with one extent.
  struct SegmentsOf {
    int64_t extent = 0;
    std::vector<Segment> all;
  };
  std::vector<Scalar> scalars;      ///< by slot
  std::vector<SegmentsOf> segments; ///< by layout
};

/// One activation of a program: the values of its slots.
struct Frame {
  std::vector<Scalar> scalars;
  std::vector<Object> objects;
  uint32_t next = 0;  ///< the instruction to run next
  uint64_t jumps = 0; ///< backward and forward, taken so far
  LaneMemory lanes;
};

/// What an op outside of scalar code reads and writes.
struct ExternalCall {
  mlir::Operation *op;
  uint32_t site; ///< of the op in its own program: below Program::numSites()
  llvm::ArrayRef<Slot> operands;
  llvm::ArrayRef<Slot> results;
  Frame &frame;
  /// Operands used here for the last time.
  llvm::ArrayRef<uint8_t> last;

  int64_t index(unsigned operand) const {
    return frame.scalars[operands[operand].number].i;
  }
  /// The object of an operand, which stays where it is.
  template <typename T>
  T *peek(unsigned operand) const {
    return static_cast<T *>(frame.objects[operands[operand].number].get());
  }
  template <typename T>
  std::shared_ptr<T> share(unsigned operand) const {
    return std::static_pointer_cast<T>(frame.objects[operands[operand].number]);
  }
  /// The object of an operand, moved out where this is its last use, so that
  /// its sole owner may change it in place. Not before the op can no longer
  /// block.
  template <typename T>
  std::shared_ptr<T> take(unsigned operand) const {
    Object &object = frame.objects[operands[operand].number];
    return std::static_pointer_cast<T>(last[operand] ? std::move(object)
                                                     : object);
  }
  void give(unsigned result, Object object) const {
    frame.objects[results[result].number] = std::move(object);
  }

  // The same by name, as ODS has it: getKeyMutable(), getKeyGrad().
  int64_t index(mlir::OpOperand &operand) const {
    return index(operand.getOperandNumber());
  }
  template <typename T>
  T *peek(mlir::OpOperand &operand) const {
    return peek<T>(operand.getOperandNumber());
  }
  template <typename T>
  std::shared_ptr<T> share(mlir::OpOperand &operand) const {
    return share<T>(operand.getOperandNumber());
  }
  template <typename T>
  std::shared_ptr<T> take(mlir::OpOperand &operand) const {
    return take<T>(operand.getOperandNumber());
  }
  void give(mlir::Value result, Object object) const {
    give(llvm::cast<mlir::OpResult>(result).getResultNumber(),
         std::move(object));
  }
};

/// Scalars of several frames that are run together, in which objects are the
/// same.
struct LaneValues {
  static constexpr int64_t width = 64; ///< of a slot in `memory`
  Scalar *memory;
  int64_t count; ///< of frames

  Scalar *of(uint32_t slot) const { return memory + slot * width; }
};

enum class Step : uint8_t { Done, Blocked, Failed };

/// Executes what the machine does not know.
class Environment {
public:
  virtual ~Environment() = default;
  /// Runs an op. Blocked: the op is run again when the frame is resumed.
  virtual Step execute(const ExternalCall &call) = 0;
  /// Runs an op for several frames at once; `call` has the objects that they
  /// share. False where that cannot be done.
  virtual bool executeTogether(const ExternalCall &call,
                               const LaneValues &lanes) = 0;
  /// Calls a function whose program has no external op.
  virtual Step call(const ExternalCall &call) = 0;
  /// Records why an evaluation stopped.
  virtual void fault(mlir::Location loc, const llvm::Twine &message) = 0;

  /// The ranks whose segments a program may ask for without this environment.
  virtual int64_t numOwners() const = 0;
};

/// What a program makes of what ops leave undefined.
struct ProgramOptions {
  /// Whether integer ops and conversions that are undefined for some operands
  /// have the values that the documentation of burst.attention says; else they
  /// are faults.
  bool isTotal = false;
  /// Whether indices into tables are clamped; else those outside are faults.
  bool clampsIndices = false;
};

/// Instructions of a function body or of a region of scalar ops.
class Program {
public:
  /// Flattens `region` (one block). Ops for which `isExternal` holds become
  /// calls of the environment; any other unknown op is an error, emitted there.
  static std::optional<Program>
  compile(mlir::Region &region,
          llvm::function_ref<bool(mlir::Operation *)> isExternal,
          ProgramOptions options = {});

  Frame makeFrame() const;
  size_t numSites() const { return operandLists.size(); }
  /// Runs until the end (Done), or until the environment blocks or fails.
  Step run(Frame &frame, Environment &environment) const;

  llvm::ArrayRef<Slot> arguments() const { return argumentSlots; }
  /// Runs `count` frames, at most LaneValues::width, that are like `frame` and
  /// take the same jumps; false where that cannot be done.
  bool runTogether(Frame &frame, Environment &environment, int64_t count) const;
  /// Runs for `count` values of each of the leading arguments, of which one
  /// alone stands for all, and gives the results in the same way; false where
  /// that cannot be done, or where one of them ends in a fault.
  bool runMany(Frame &frame, Environment &environment, int64_t count,
               llvm::ArrayRef<llvm::ArrayRef<Scalar>> arguments,
               llvm::ArrayRef<llvm::MutableArrayRef<Scalar>> results) const;

  /// Operands of the terminator.
  llvm::ArrayRef<Slot> results() const { return resultSlots; }
  /// Of an argument to which burst.contribute adds: where its gradient is held.
  std::optional<Slot> gradient(unsigned argument) const {
    auto entry = gradientSlots.find(argument);
    if (entry == gradientSlots.end())
      return std::nullopt;
    return entry->second;
  }

private:
  friend class Compiler;
  friend class RegionEvaluator;
  struct OperandList {
    std::vector<Slot> operands, results;
    std::vector<uint8_t> last;
    std::vector<uint32_t> released; ///< objects that nothing behind reads
  };
  /// Instructions [begin, end) that may be run for many operands at once.
  struct LaneCode {
    uint32_t begin = 0, end = 0;
    std::vector<uint32_t> given; ///< scalars that it reads and does not make
  };
  /// A loop of which the turns may be run together, behind its test and without
  /// the instruction of the next turn.
  struct LaneLoop {
    LaneCode code;
    int64_t extent;
  };
  class Lanes;
  /// More than any schedule of 2048 ranks takes.
  static constexpr uint64_t maxJumps = uint64_t{1} << 28;

  /// Whether an instruction is of scalars, and may be run again.
  static bool canRunInLanes(Opcode opcode);
  /// None where some instruction cannot be run so. `varying` is made by whom
  /// runs it.
  std::optional<LaneCode>
  laneCode(uint32_t begin, uint32_t end, std::optional<uint32_t> varying,
           llvm::function_ref<bool(Opcode)> canRun) const;
  static bool isSegment(const Layout &layout, int64_t owner, int64_t index,
                        int64_t numRanks) {
    return owner >= 0 && owner < numRanks && owner < layout.numOwners() &&
           index >= 0 && index < layout.numSegments();
  }
  /// False where nothing is said: the loop is to be run turn by turn.
  bool runLanes(const Instruction &trial, Frame &frame,
                Environment &environment) const;
  Step runExternal(const Instruction &instruction, Frame &frame,
                   Environment &environment) const;
  Step runTable(const Instruction &instruction, Frame &frame,
                Environment &environment) const;
  int64_t offsetOf(const OperandList &list, const Tensor &table,
                   const Frame &frame) const;
  bool extract(const Instruction &instruction, Frame &frame) const;
  void store(const Instruction &instruction, Frame &frame) const;
  bool runSegment(const Instruction &instruction, Frame &frame,
                  const Environment &environment) const;

  ProgramOptions options;
  std::vector<Instruction> code;
  std::vector<OperandList> operandLists;
  std::vector<LaneLoop> laneLoops;
  std::optional<LaneCode> whole; ///< of a region: all of it
  std::vector<Object> constants;
  std::vector<Layout> layouts;
  std::vector<Slot> argumentSlots, resultSlots;
  llvm::DenseMap<unsigned, Slot> gradientSlots;
  uint32_t numScalars = 0, numObjects = 0;
};

/// Evaluates a mask, score, bounds or gradient region for scalar arguments, by
/// the meaning that burst.attention gives to its regions. Not for use by
/// several threads at once; copies are, but for gradients.
class RegionEvaluator : private Environment {
public:
  /// `captures` are the values of the region's trailing arguments.
  struct Capture {
    Scalar scalar{0};
    TensorRef table;
  };
  /// Without `isTotal`, what arith leaves undefined is a fault: none of it is
  /// left behind burst-guard-regions.
  static std::optional<RegionEvaluator> create(mlir::Region &region,
                                               llvm::ArrayRef<Capture> captures,
                                               bool isTotal = true);

  /// Where a gradient region adds what it contributes to a capture: floats of
  /// the capture's shape, without dimensions for a scalar. What is contributed
  /// to a capture without a table is dropped. Copies share the table.
  void setGradient(unsigned capture, TensorRef table);

  /// Sets the leading arguments and runs; false on a fault.
  bool evaluate(llvm::ArrayRef<Scalar> arguments);
  /// The same for `count` boxes or points at once, see Program::runMany.
  bool evaluateMany(int64_t count,
                    llvm::ArrayRef<llvm::ArrayRef<Scalar>> arguments,
                    llvm::ArrayRef<llvm::MutableArrayRef<Scalar>> results) {
    return program->runMany(frame, *this, count, arguments, results);
  }
  Scalar result(unsigned index) const {
    return frame.scalars[program->results()[index].number];
  }
  const std::optional<Fault> &getFault() const { return failure; }

private:
  Step execute(const ExternalCall &) override { return Step::Failed; }
  bool executeTogether(const ExternalCall &, const LaneValues &) override {
    return false;
  }
  Step call(const ExternalCall &) override { return Step::Failed; }
  int64_t numOwners() const override { return 0; }
  void fault(mlir::Location loc, const llvm::Twine &message) override {
    failure = Fault{loc, message.str()};
  }

  std::shared_ptr<const Program> program;
  Frame frame;
  size_t numLeading = 0; ///< arguments in front of the captures
  std::optional<Fault> failure;
};

} // namespace burst

#endif // BURST_PASSES_SIMULATION_SCALARS_PROGRAM_H
