//===- Audit.cpp - schedules without data, and their proof ----------------===//
#include "passes/Machine/Audit.h"

#include "passes/Machine/Interpreter.h"

#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace mlir;
using namespace burst;

//===----------------------------------------------------------------------===//
// Without data
//===----------------------------------------------------------------------===//

State Bookkeeper::init(ring::InitOp op, const Tensor &query) {
  return makeState(op, query);
}

bool Bookkeeper::attend(Attend &attend, State &result, std::string &) {
  result = std::move(attend.state);
  makeUnique(result);
  return true;
}

bool Bookkeeper::merge(State &into, const State &, std::string &) {
  makeUnique(into);
  return true;
}

bool Bookkeeper::finalize(ring::FinalizeOp op, State &state, TensorRef &out,
                          TensorRef &lse, std::string &) {
  makeUnique(state);
  Type element = cast<RankedTensorType>(op.getOut().getType()).getElementType();
  out = state.o;
  if (out->element != element)
    out =
        std::make_shared<Tensor>(state.o->shape, element, state.o->getGauge());
  lse = state.m;
  return true;
}

//===----------------------------------------------------------------------===//
// Classes of pairs
//===----------------------------------------------------------------------===//

PairClass Classifier::classify(const Attend &attend, int64_t owner, int64_t a,
                               int64_t b) {
  ring::AttendOp op = attend.op;
  int64_t numB = op.getKeyLayout().getNumSegments();
  auto &known = entries[op].known[{attend.queryOwner, owner}];
  known.resize(op.getQueryLayout().getNumSegments() * numB, UINT8_MAX);
  uint8_t &entry = known[a * numB + b];
  if (entry == UINT8_MAX)
    entry = static_cast<uint8_t>(compute(attend, owner, a, b));
  return static_cast<PairClass>(entry);
}

PairClass Classifier::compute(const Attend &attend, int64_t owner, int64_t a,
                              int64_t b) {
  ring::AttendOp op = attend.op;
  Segment q = op.getQueryLayout().getDeal().segment(attend.queryOwner, a,
                                                    attend.queryExtent);
  Segment k = op.getKeyLayout().getDeal().segment(owner, b, attend.keyExtent);
  int64_t batch = attend.query->shape[0], heads = attend.query->shape[2];
  if (q.count == 0 || k.count == 0)
    return PairClass::Empty;
  if (op.getMask().empty())
    return PairClass::Full;
  if (op.getBounds().empty())
    return PairClass::Partial;
  std::optional<RegionEvaluator> &bounds = entries[op].bounds;
  if (!bounds)
    bounds = RegionEvaluator::create(op.getBounds(), attend.maskCaptures);
  int64_t box[] = {0,
                   batch,
                   0,
                   heads,
                   q.begin,
                   q.end(),
                   k.begin,
                   k.end(),
                   attend.queryExtent,
                   attend.keyExtent};
  Scalar arguments[std::size(box)];
  for (auto [argument, value] : llvm::zip(arguments, box))
    argument.i = value;
  if (!bounds || !bounds->evaluate(arguments))
    return PairClass::Partial;
  if (bounds->result(0).i == 0)
    return PairClass::Empty;
  return bounds->result(1).i != 0 ? PairClass::Full : PairClass::Partial;
}

//===----------------------------------------------------------------------===//
// The proof
//===----------------------------------------------------------------------===//

namespace {

/// What a state has absorbed.
struct Account : Tensor {
  using Tensor::Tensor;
  /// Per owner, query segment and key segment, how often it was absorbed.
  std::vector<uint8_t> absorbed;
  /// The first attend, and whose slices it took: all others must agree.
  std::optional<Attend> first;
  int keyArgument = -1, valueArgument = -1;
};

class Auditor : public Bookkeeper {
public:
  Auditor(int64_t parts, const ProofOptions &options, Proof &proof)
      : parts(parts), options(options), proof(proof) {}

  State init(ring::InitOp op, const Tensor &query) override;
  bool attend(Attend &attend, State &result, std::string &message) override;
  bool merge(State &into, const State &from, std::string &message) override;
  bool finalize(ring::FinalizeOp op, State &state, TensorRef &out,
                TensorRef &lse, std::string &message) override;
  bool start(const Transfer &transfer, int64_t slices,
             std::string &message) override;

  bool isFinal(const TensorRef &tensor) const {
    return finals.count(tensor) != 0;
  }

private:
  std::string checkQuery(const Attend &attend);
  std::string checkSlice(const Attend &attend, size_t index);
  std::string absorb(const Attend &attend, size_t index, Account &account);
  std::string checkComplete(const Account &account);

  int64_t parts;
  const ProofOptions &options;
  Proof &proof;
  Classifier classifier;
  /// Weak, for results that nobody returns take no memory.
  std::set<std::weak_ptr<Tensor>, std::owner_less<std::weak_ptr<Tensor>>>
      finals;
};

template <typename... Args>
std::string format(const char *text, Args &&...args) {
  return llvm::formatv(text, std::forward<Args>(args)...).str();
}

} // namespace

State Auditor::init(ring::InitOp op, const Tensor &query) {
  State state = makeState(op, query);
  auto shape = state.o->shape;
  state.o.reset(); // so that the account takes its place in memory
  state.o =
      std::make_shared<Account>(shape, state.m->element, query.getGauge());
  return state;
}

std::string Auditor::checkQuery(const Attend &attend) {
  const Tensor &query = *attend.query;
  if (query.argument < 0)
    return "attends with a query that is no shard of an argument";
  if (query.owner != attend.queryOwner)
    return format("takes the queries for those of rank {0}, they are those of "
                  "{1}",
                  attend.queryOwner, query.owner);
  ring::AttendOp op = attend.op;
  int64_t rows = op.getQueryLayout().getDeal().count(attend.queryOwner,
                                                     attend.queryExtent);
  if (query.shape[1] != rows)
    return format("has {0} queries, its layout says {1}", query.shape[1], rows);
  return "";
}

std::string Auditor::checkSlice(const Attend &attend, size_t index) {
  const Attend::Slice &slice = attend.slices[index];
  ring::AttendOp op = attend.op;
  Deal deal = op.getKeyLayout().getDeal();
  for (const TensorRef &tensor : {slice.key, slice.value}) {
    StringRef what = tensor == slice.key ? "keys" : "values";
    if (tensor->argument < 0)
      return format("attends {0} that are no shard of an argument", what);
    if (tensor->owner != slice.owner)
      return format("takes the {0} for those of rank {1}, they are those of "
                    "{2}",
                    what, slice.owner, tensor->owner);
    int64_t count = deal.count(slice.owner, attend.keyExtent);
    if (tensor->shape[1] != count)
      return format("has {0} {1}, its layout says {2}", tensor->shape[1], what,
                    count);
  }
  return "";
}

static bool sameArguments(ArrayRef<Argument> a, ArrayRef<Argument> b) {
  return llvm::equal(a, b, [](const Argument &x, const Argument &y) {
    return x.scalar.i == y.scalar.i && x.table == y.table;
  });
}

/// Two attends ask for the same attention.
static std::string checkSame(const Attend &first, const Attend &attend) {
  ring::AttendOp a = first.op, b = attend.op;
  if (first.query->argument != attend.query->argument)
    return "attends with another query than the state before it";
  if (first.queryExtent != attend.queryExtent ||
      first.keyExtent != attend.keyExtent)
    return "has other extents than the state before it";
  if (!sameArguments(first.maskCaptures, attend.maskCaptures) ||
      !sameArguments(first.scoreCaptures, attend.scoreCaptures))
    return "captures other values than the state before it";
  if (a == b)
    return "";
  auto same = [](Region &x, Region &y) {
    return OperationEquivalence::isRegionEquivalentTo(
        &x, &y, OperationEquivalence::IgnoreLocations);
  };
  if (a.getScale() != b.getScale() || a.getKeyLayout() != b.getKeyLayout() ||
      a.getQueryLayout() != b.getQueryLayout() ||
      !same(a.getMask(), b.getMask()) || !same(a.getScore(), b.getScore()) ||
      !same(a.getBounds(), b.getBounds()))
    return "has another mask, score, scale or layout than the state before it";
  return "";
}

/// All attends of one state compute one attention.
static std::string checkSame(const Account &account, const Attend &attend) {
  for (const Attend::Slice &slice : attend.slices)
    if (slice.key->argument != account.keyArgument ||
        slice.value->argument != account.valueArgument)
      return "attends slices of other tensors than the state before it";
  return checkSame(*account.first, attend);
}

std::string Auditor::absorb(const Attend &attend, size_t index,
                            Account &account) {
  ring::AttendOp op = attend.op;
  const Attend::Slice &slice = attend.slices[index];
  int64_t numA = op.getQueryLayout().getNumSegments();
  int64_t numB = op.getKeyLayout().getNumSegments();
  Deal rows = op.getQueryLayout().getDeal(),
       columns = op.getKeyLayout().getDeal();
  for (int64_t a = 0; a < numA; ++a)
    for (int64_t b = 0; b < numB; ++b) {
      bool isVoid =
          rows.segment(attend.queryOwner, a, attend.queryExtent).count == 0 ||
          columns.segment(slice.owner, b, attend.keyExtent).count == 0;
      if (!attend.isComputed(index, a, b) || isVoid)
        continue;
      if (!((slice.key->segments & slice.value->segments) >> b & 1))
        return format("reads segment {0} of rank {1}, which was not received",
                      b, slice.owner);
      if (!options.allowEmpty &&
          classifier.classify(attend, slice.owner, a, b) == PairClass::Empty)
        return format(
            "computes query segment {0} with segment {1} of rank {2}, "
            "of which the mask keeps nothing",
            a, b, slice.owner);
      uint8_t &times = account.absorbed[(slice.owner * numA + a) * numB + b];
      if (times != 0)
        return format("computes query segment {0} with segment {1} of rank {2} "
                      "a second time",
                      a, b, slice.owner);
      ++times;
      ++proof.computed;
    }
  return "";
}

bool Auditor::attend(Attend &attend, State &result, std::string &message) {
  ring::AttendOp op = attend.op;
  message = checkQuery(attend);
  for (size_t index = 0; index < attend.slices.size() && message.empty();
       ++index)
    message = checkSlice(attend, index);
  if (!message.empty())
    return false;
  auto old = std::dynamic_pointer_cast<Account>(attend.state.o);
  if (!old) {
    message = "merges into a state that ring.init did not make";
    return false;
  }
  if (old->first)
    message = checkSame(*old, attend);
  if (!message.empty())
    return false;
  // Values never change: a state that others still use is copied.
  result = attend.state;
  auto account = old;
  attend.state = State();
  if (old.use_count() > 3) { // old, account and result.o
    account =
        std::make_shared<Account>(old->shape, old->element, old->getGauge());
    account->absorbed = old->absorbed;
    account->first = old->first;
    account->keyArgument = old->keyArgument;
    account->valueArgument = old->valueArgument;
    result.o = account;
  }
  for (TensorRef *part : {&result.m, &result.l})
    if (part->use_count() > 1)
      *part = std::make_shared<Tensor>((*part)->shape, (*part)->element,
                                       (*part)->getGauge());
  if (!account->first) {
    account->absorbed.resize(parts * op.getQueryLayout().getNumSegments() *
                             op.getKeyLayout().getNumSegments());
    account->first = attend;
    account->keyArgument = attend.slices.front().key->argument;
    account->valueArgument = attend.slices.front().value->argument;
    // It is kept for what it names; its slices must not live on.
    account->first->slices.clear();
  }
  for (size_t index = 0; index < attend.slices.size() && message.empty();
       ++index)
    message = absorb(attend, index, *account);
  return message.empty();
}

bool Auditor::merge(State &into, const State &from, std::string &message) {
  auto a = std::dynamic_pointer_cast<Account>(into.o);
  auto b = std::dynamic_pointer_cast<Account>(from.o);
  if (!a || !b) {
    message = "merges a state that ring.init did not make";
    return false;
  }
  if (!b->first)
    return true;
  auto merged = std::make_shared<Account>(a->shape, a->element, a->getGauge());
  merged->first = b->first;
  merged->keyArgument = b->keyArgument;
  merged->valueArgument = b->valueArgument;
  merged->absorbed = b->absorbed;
  if (a->first) {
    message = checkSame(*a->first, *b->first);
    if (a->keyArgument != b->keyArgument ||
        a->valueArgument != b->valueArgument)
      message = "merges states that attended slices of different tensors";
    for (auto [x, y] : llvm::zip_equal(merged->absorbed, a->absorbed)) {
      if (x != 0 && y != 0)
        message = "merges states that have absorbed the same pair";
      x += y;
    }
  }
  into.o = merged;
  return message.empty();
}

/// Every pair that the mask does not rule out has been absorbed.
std::string Auditor::checkComplete(const Account &account) {
  const Attend &first = *account.first;
  ring::AttendOp op = first.op;
  int64_t numA = op.getQueryLayout().getNumSegments();
  int64_t numB = op.getKeyLayout().getNumSegments();
  for (int64_t owner = 0; owner < parts; ++owner)
    for (int64_t a = 0; a < numA; ++a)
      for (int64_t b = 0; b < numB; ++b) {
        bool isAbsorbed = account.absorbed[(owner * numA + a) * numB + b] != 0;
        if (classifier.classify(first, owner, a, b) == PairClass::Empty) {
          ++(isAbsorbed ? proof.wasted : proof.dropped);
          continue;
        }
        if (!isAbsorbed)
          return format("lacks query segment {0} with segment {1} of rank {2}, "
                        "which no attend has computed",
                        a, b, owner);
      }
  return "";
}

bool Auditor::finalize(ring::FinalizeOp op, State &state, TensorRef &out,
                       TensorRef &lse, std::string &message) {
  auto account = std::dynamic_pointer_cast<Account>(state.o);
  if (!account || !account->first)
    message = "ends a state that has attended nothing";
  else
    message = checkComplete(*account);
  if (!message.empty())
    return false;
  account.reset();
  if (!Bookkeeper::finalize(op, state, out, lse, message))
    return false;
  finals.insert({out, lse});
  return true;
}

bool Auditor::start(const Transfer &transfer, int64_t slices,
                    std::string &message) {
  for (const TensorRef &tensor : transfer.tensors) {
    if (tensor->argument < 0)
      message = "sends a tensor that is no shard of an argument";
    else if (tensor->owner != transfer.owner)
      message = format("sends the shard of rank {0} as that of {1}",
                       tensor->owner, transfer.owner);
    else if ((tensor->segments & transfer.sendMask) != transfer.sendMask)
      message =
          format("sends segments {0:x} of rank {1}, of which it has {2:x}",
                 transfer.sendMask, transfer.owner, tensor->segments);
  }
  if (slices > options.maxSlices)
    message = format("receives a slice while {0} are still needed, and there "
                     "are buffers for {1}",
                     slices - 1, options.maxSlices);
  return message.empty();
}

std::optional<Counterexample> burst::prove(Simulation &simulation,
                                           ArrayRef<Argument> globals,
                                           const ProofOptions &options,
                                           Proof &proof) {
  simulation.reset();
  Auditor auditor(simulation.numRanks(), options, proof);
  if (!simulation.run(auditor,
                      shardGlobals(simulation, globals, ShardData::Omit)))
    return simulation.getCounterexample();
  proof.traffic = simulation.getTraffic();
  for (auto [rank, results] : llvm::enumerate(simulation.getResults()))
    for (auto [index, result] : llvm::enumerate(results))
      if (!result || !auditor.isFinal(result))
        return Counterexample{
            static_cast<int64_t>(rank), 0,
            simulation.getFunction().getBody().front().getTerminator(),
            format("returns as result {0} what no ring.finalize has made",
                   index)};
  return std::nullopt;
}

std::optional<Counterexample> burst::plan(Simulation &simulation,
                                          ArrayRef<Argument> globals,
                                          std::vector<Traffic> &traffic) {
  simulation.reset();
  Bookkeeper bookkeeper;
  if (!simulation.run(bookkeeper,
                      shardGlobals(simulation, globals, ShardData::Omit)))
    return simulation.getCounterexample();
  traffic = simulation.getTraffic();
  return std::nullopt;
}

void burst::report(func::FuncOp program, const Counterexample &counterexample) {
  Operation *op = counterexample.op ? counterexample.op : program;
  InFlightDiagnostic diagnostic =
      emitError(op->getLoc())
      << "'" << op->getName() << "' op schedule refused: rank "
      << counterexample.rank << ", hop " << counterexample.hop << ": "
      << counterexample.message;
  diagnostic.attachNote(program.getLoc())
      << "in the program of a rank of " << SymbolRefAttr::get(program);
}
