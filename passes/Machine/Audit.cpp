//===- Audit.cpp - schedules without data, and their proof ----------------===//
#include "passes/Machine/Auditor.h"
#include "passes/Machine/Interpreter.h"

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

bool Bookkeeper::merge(Merge &merge, std::string &) {
  makeUnique(merge.into);
  return true;
}

bool Bookkeeper::finalize(ring::FinalizeOp op, State &state, TensorRef &out,
                          TensorRef &lse, std::string &) {
  makeUnique(state);
  Type element = cast<RankedTensorType>(op.getOut().getType()).getElementType();
  out = state.o;
  if (out->element != element)
    out = std::make_shared<Tensor>(state.o->shape, element);
  lse = state.m;
  return true;
}

TensorRef Bookkeeper::zero(ring::ZeroOp op, const Tensor &like) {
  return makeLike(op.getZero(), like);
}

bool Bookkeeper::delta(ring::DeltaOp op, const TensorRef &out,
                       const TensorRef &, const TensorRef &, TensorRef &result,
                       std::string &) {
  int64_t shape[] = {out->shape[0], out->shape[2], out->shape[1]};
  result = std::make_shared<Tensor>(
      shape, cast<RankedTensorType>(op.getDelta().getType()).getElementType());
  return true;
}

bool Bookkeeper::attendGrad(AttendGrad &attend, std::string &) {
  for (TensorRef &grad : attend.grads)
    makeUnique(grad);
  return true;
}

bool Bookkeeper::add(Sum &sum, std::string &) {
  makeUnique(sum.a);
  return true;
}

bool Bookkeeper::round(ring::RoundOp op, const TensorRef &gradient,
                       TensorRef &result, std::string &) {
  result = makeLike(op.getRounded(), *gradient);
  return true;
}

//===----------------------------------------------------------------------===//
// Classes of pairs
//===----------------------------------------------------------------------===//

PairClass Classifier::classify(const Meeting &meeting, int64_t queryOwner,
                               int64_t owner, int64_t a, int64_t b) {
  int64_t numA = meeting.queryLayout.getNumSegments();
  int64_t numB = meeting.keyLayout.getNumSegments();
  int64_t parts = meeting.keyLayout.getParts();
  std::vector<uint8_t> &known = entries[meeting.at].known;
  if (known.empty())
    known.assign(meeting.queryLayout.getParts() * parts * numA * numB,
                 UINT8_MAX);
  uint8_t &entry = known[((queryOwner * parts + owner) * numA + a) * numB + b];
  if (entry == UINT8_MAX)
    entry = static_cast<uint8_t>(compute(meeting, queryOwner, owner, a, b));
  return static_cast<PairClass>(entry);
}

PairClass Classifier::compute(const Meeting &meeting, int64_t queryOwner,
                              int64_t owner, int64_t a, int64_t b) {
  Segment q =
      meeting.queryLayout.getDeal().segment(queryOwner, a, meeting.queryExtent);
  Segment k = meeting.keyLayout.getDeal().segment(owner, b, meeting.keyExtent);
  int64_t batch = std::max<int64_t>(meeting.query->shape[0], 1);
  int64_t heads = meeting.query->shape[2];
  if (q.count == 0 || k.count == 0)
    return PairClass::Empty;
  if (meeting.mask->empty())
    return PairClass::Full;
  if (meeting.bounds->empty())
    return PairClass::Partial;
  std::optional<RegionEvaluator> &bounds = entries[meeting.at].bounds;
  if (!bounds)
    bounds = RegionEvaluator::create(*meeting.bounds, meeting.maskCaptures);
  int64_t box[] = {0,
                   batch,
                   0,
                   heads,
                   q.begin,
                   q.end(),
                   k.begin,
                   k.end(),
                   meeting.queryExtent,
                   meeting.keyExtent};
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

std::string burst::describe(const Sharding &sharding) {
  std::string order(stringifyOrder(sharding.deal.order));
  if (sharding.deal.order == Order::Striped)
    order += " " + std::to_string(sharding.deal.block);
  return format("dimension {0} of {1} positions, {2} over {3}", sharding.dim,
                sharding.extent, order, sharding.deal.parts);
}

uint64_t burst::segmentsOf(const Sharding &sharding, int64_t owner) {
  uint64_t mask = 0;
  for (int64_t s = 0; s < sharding.deal.numSegments(); ++s)
    if (sharding.deal.segment(owner, s, sharding.extent).count != 0)
      mask |= uint64_t{1} << s;
  return mask;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// Puts a part in the place of a tensor.
template <typename T>
static void makePart(TensorRef &tensor, char name) {
  auto shape = tensor->shape;
  Type element = tensor->element;
  tensor.reset();
  auto part = std::make_shared<T>(shape, element);
  part->name = name;
  tensor = std::move(part);
}

/// A new state has its parts for itself: values never change, and others may
/// still use those of the state before it.
void Auditor::renumber(State &state) {
  ++numStates;
  for (auto [part, name] : {std::pair(&state.m, 'm'), {&state.l, 'l'}}) {
    if (part->use_count() > 1) {
      uint64_t segments = (*part)->segments;
      makePart<Part>(*part, name);
      (*part)->segments = segments;
    }
    static_cast<Part &>(**part).state = numStates;
  }
  static_cast<Account &>(*state.o).state = numStates;
}

State Auditor::init(ring::InitOp op, const Tensor &query) {
  StateShapes shapes(op, query);
  auto o = std::make_shared<Account>(shapes.values, shapes.element);
  auto m = std::make_shared<Part>(shapes.rows, shapes.element);
  auto l = std::make_shared<Part>(shapes.rows, shapes.element);
  std::tie(o->name, m->name, l->name) = std::tuple('o', 'm', 'l');
  State state{std::move(o), std::move(m), std::move(l)};
  renumber(state);
  return state;
}

Account &burst::ownAccount(State &state) {
  auto &old = static_cast<Account &>(*state.o);
  if (state.o.use_count() == 1)
    return old;
  TensorRef shared = state.o;
  makePart<Account>(state.o, 'o');
  auto &account = static_cast<Account &>(*state.o);
  account.segments = old.segments;
  account.absorbed = old.absorbed;
  account.question = old.question;
  return account;
}

std::string burst::checkState(const State &state) {
  const auto *o = dynamic_cast<const Account *>(state.o.get());
  const auto *m = dynamic_cast<const Part *>(state.m.get());
  const auto *l = dynamic_cast<const Part *>(state.l.get());
  if (!o || !m || !l)
    return "takes a state that ring.init did not make";
  if (m->name != 'm' || l->name != 'l')
    return "takes m and l for each other";
  if (o->state == 0 || o->state != m->state || o->state != l->state)
    return "takes o, m and l of different states";
  return "";
}

std::string Auditor::checkUnchanged(const Tensor &tensor, StringRef what) {
  if (sending.count(&tensor) == 0)
    return "";
  return format("changes a {0} that is under way", what);
}

std::string Auditor::checkUnchanged(const State &state) {
  for (const TensorRef *part : {&state.o, &state.m, &state.l})
    if (std::string found = checkUnchanged(**part, "state"); !found.empty())
      return found;
  return "";
}

//===----------------------------------------------------------------------===//
// Attends
//===----------------------------------------------------------------------===//

std::string Auditor::checkQuery(const Meeting &meeting) {
  const Tensor &query = *meeting.query;
  if (query.argument < 0)
    return "attends with a query that is no shard of an argument";
  if (query.owner != meeting.queryOwner)
    return format("takes the queries for those of rank {0}, they are those of "
                  "{1}",
                  meeting.queryOwner, query.owner);
  Deal deal = meeting.queryLayout.getDeal();
  int64_t rows = deal.count(meeting.queryOwner, meeting.queryExtent);
  if (query.shape[1] != rows)
    return format("has {0} queries, its layout says {1}", query.shape[1], rows);
  Sharding wanted{deal, 1, meeting.queryExtent};
  if (query.sharding != wanted)
    return format("takes queries that are dealt as {0} as if they were dealt "
                  "as {1}",
                  describe(query.sharding), describe(wanted));
  return "";
}

std::string Auditor::checkSlice(const Meeting &meeting, const Slice &slice) {
  Deal deal = meeting.keyLayout.getDeal();
  for (const Tensor *tensor : {slice.key.get(), slice.value.get()}) {
    if (!tensor)
      continue;
    StringRef what = tensor == slice.key.get() ? "keys" : "values";
    if (tensor->argument < 0)
      return format("attends {0} that are no shard of an argument", what);
    if (tensor->owner != slice.owner)
      return format("takes the {0} for those of rank {1}, they are those of "
                    "{2}",
                    what, slice.owner, tensor->owner);
    int64_t count = deal.count(slice.owner, meeting.keyExtent);
    if (tensor->shape[1] != count)
      return format("has {0} {1}, its layout says {2}", tensor->shape[1], what,
                    count);
    Sharding wanted{deal, 1, meeting.keyExtent};
    if (tensor->sharding != wanted)
      return format("takes {0} that are dealt as {1} as if they were dealt as "
                    "{2}",
                    what, describe(tensor->sharding), describe(wanted));
  }
  return "";
}

PairMask burst::computedPairs(const Meeting &meeting, size_t index,
                              int64_t owner) {
  int64_t numA = meeting.queryLayout.getNumSegments();
  int64_t numB = meeting.keyLayout.getNumSegments();
  PairMask pairs = 0;
  for (int64_t a = 0; a < numA; ++a)
    for (int64_t b = 0; b < numB; ++b)
      pairs |= meeting.isComputed(index, a, b) * pairBit(a, b, numB);
  if (pairs == 0)
    return 0;
  uint64_t rows =
      segmentsOf({meeting.queryLayout.getDeal(), 1, meeting.queryExtent},
                 meeting.queryOwner);
  uint64_t columns =
      segmentsOf({meeting.keyLayout.getDeal(), 1, meeting.keyExtent}, owner);
  return pairs & pairsOfQueries(rows, numA, numB) &
         pairsOfKeys(columns, numA, numB);
}

std::string Auditor::checkNeeded(const Meeting &meeting, int64_t owner,
                                 int64_t a, int64_t b) {
  if (options.allowEmpty ||
      classifier.classify(meeting, owner, a, b) != PairClass::Empty)
    return "";
  return format("computes query segment {0} with segment {1} of rank {2}, of "
                "which the mask keeps nothing",
                a, b, owner);
}

/// One table, or two of the same content: each rank makes its own.
static bool sameTable(const TensorRef &a, const TensorRef &b) {
  if (!a || !b || a == b)
    return a == b;
  return a->shape == b->shape && a->element == b->element && a->hasData() &&
         a->ints == b->ints && a->floats == b->floats;
}

static bool sameArguments(ArrayRef<Argument> a, ArrayRef<Argument> b) {
  return llvm::equal(a, b, [](const Argument &x, const Argument &y) {
    return x.scalar.i == y.scalar.i && sameTable(x.table, y.table);
  });
}

static std::shared_ptr<const Question> makeQuestion(const Attend &attend) {
  auto question = std::make_shared<Question>(Question{
      attend, attend.query->argument, attend.slices.front().key->argument,
      attend.slices.front().value->argument});
  // It is kept for what it names, and outlives what was received.
  question->attend.query =
      std::make_shared<Tensor>(attend.query->shape, attend.query->element);
  question->attend.slices.clear();
  question->attend.state = State();
  return question;
}

std::string burst::difference(const Meeting &x, const Meeting &y) {
  if (x.queryExtent != y.queryExtent || x.keyExtent != y.keyExtent)
    return "has other extents";
  if (!sameArguments(x.maskCaptures, y.maskCaptures) ||
      !sameArguments(x.scoreCaptures, y.scoreCaptures))
    return "captures other values";
  if (x.at == y.at)
    return "";
  auto same = [](Region *x, Region *y) {
    return OperationEquivalence::isRegionEquivalentTo(
        x, y, OperationEquivalence::IgnoreLocations);
  };
  if (x.scale != y.scale || x.keyLayout != y.keyLayout ||
      x.queryLayout != y.queryLayout || !same(x.mask, y.mask) ||
      !same(x.score, y.score) || !same(x.bounds, y.bounds))
    return "has another mask, score, scale or layout";
  return "";
}

std::string burst::difference(const Question &x, const Question &y) {
  if (x.key != y.key || x.value != y.value)
    return "attends slices of other tensors";
  if (x.query != y.query)
    return "attends with another query";
  return difference(x.attend, y.attend);
}

/// All attends of one state compute one attention, for one rank's queries.
static std::string checkAgrees(const Question &question, const Attend &attend) {
  std::string found = difference(question.attend, attend);
  if (attend.query->argument != question.query)
    found = "attends with another query";
  for (const Slice &slice : attend.slices)
    if (slice.key->argument != question.key ||
        slice.value->argument != question.value)
      found = "attends slices of other tensors";
  if (int64_t owner = question.attend.queryOwner; owner != attend.queryOwner)
    found = format("attends with the queries of rank {0}, not of {1},",
                   attend.queryOwner, owner);
  return found.empty() ? "" : found + " than the state before it";
}

/// What an attend asks of a fresh state.
std::shared_ptr<const Question> Auditor::ask(const Attend &attend) {
  std::shared_ptr<const Question> &known =
      asked[{attend.at, attend.queryOwner}];
  if (!known || !checkAgrees(*known, attend).empty())
    known = makeQuestion(attend);
  return known;
}

std::string Auditor::absorb(const Attend &attend, size_t index,
                            Account &account) {
  const Slice &slice = attend.slices[index];
  int64_t numA = attend.queryLayout.getNumSegments();
  int64_t numB = attend.keyLayout.getNumSegments();
  PairMask pairs = computedPairs(attend, index, slice.owner);
  PairMask before = account.absorbed.at(slice.owner);
  for (int64_t a = 0; a < numA; ++a)
    for (int64_t b = 0; b < numB; ++b) {
      if (!(pairs & pairBit(a, b, numB)))
        continue;
      if (!((slice.key->segments & slice.value->segments) >> b & 1))
        return format("reads segment {0} of rank {1}, which was not received",
                      b, slice.owner);
      if (!(attend.query->segments >> a & 1))
        return format("reads query segment {0} of rank {1}, which was not "
                      "received",
                      a, attend.queryOwner);
      if (!(account.segments >> a & 1))
        return format("adds to segment {0} of a state, which was not received",
                      a);
      if (std::string found = checkNeeded(attend, slice.owner, a, b);
          !found.empty())
        return found;
      if (before & pairBit(a, b, numB))
        return format("computes query segment {0} with segment {1} of rank {2} "
                      "a second time",
                      a, b, slice.owner);
      ++proof.computed;
    }
  account.absorbed.add(slice.owner, pairs);
  return "";
}

bool Auditor::attend(Attend &attend, State &result, std::string &message) {
  message = checkQuery(attend);
  for (size_t index = 0; index < attend.slices.size() && message.empty();
       ++index)
    message = checkSlice(attend, attend.slices[index]);
  if (message.empty())
    message = checkState(attend.state);
  if (message.empty())
    message = checkUnchanged(attend.state);
  const Tensor &state = *attend.state.o;
  if (message.empty() && state.owner != attend.queryOwner)
    message = format("attends with the queries of rank {0} for a state of "
                     "those of {1}",
                     attend.queryOwner, state.owner);
  if (message.empty() && state.sharding != attend.query->sharding)
    message =
        format("attends with queries that are dealt as {0} for a state "
               "of such that are dealt as {1}",
               describe(attend.query->sharding), describe(state.sharding));
  if (!message.empty())
    return false;
  result = std::move(attend.state);
  Account &account = ownAccount(result);
  renumber(result);
  if (!account.question)
    account.question = ask(attend);
  message = checkAgrees(*account.question, attend);
  for (size_t index = 0; index < attend.slices.size() && message.empty();
       ++index)
    message = absorb(attend, index, account);
  return message.empty();
}

/// Both are states of the owner's queries, and what is merged is there.
std::string Auditor::checkMerged(const Merge &merge) {
  ring::MergeOp op = merge.op;
  Deal deal = op.getLayout().getDeal();
  for (const State *state : {&merge.into, &merge.from}) {
    for (const auto &[part, dim] : {std::pair(state->o.get(), 1),
                                    {state->m.get(), 2},
                                    {state->l.get(), 2}}) {
      if ((part->segments & merge.segments) != merge.segments)
        return format("merges segments {0:x} of a state, of which it has {1:x}",
                      merge.segments, part->segments);
      if (part->owner != merge.owner)
        return format("merges a state of the queries of rank {0} as one of "
                      "those of {1}",
                      part->owner, merge.owner);
      Sharding wanted{deal, dim, merge.extent};
      if (part->sharding != wanted)
        return format("merges a state of what is dealt as {0} as if it were "
                      "dealt as {1}",
                      describe(part->sharding), describe(wanted));
    }
    if (std::string found = checkState(*state); !found.empty())
      return found;
  }
  return checkUnchanged(merge.into);
}

bool Auditor::merge(Merge &merge, std::string &message) {
  message = checkMerged(merge);
  if (!message.empty())
    return false;
  Account &account = ownAccount(merge.into);
  renumber(merge.into);
  const auto &other = static_cast<const Account &>(*merge.from.o);
  if (!other.question)
    return true;
  if (!account.question)
    account.question = other.question;
  // Whose queries they are has been checked.
  if (std::string found = difference(*account.question, *other.question);
      !found.empty()) {
    message = "merges a state that " + found + " than the other";
    return false;
  }
  int64_t numA = account.question->attend.queryLayout.getNumSegments();
  int64_t numB = account.question->attend.keyLayout.getNumSegments();
  if (account.absorbed.unite(other.absorbed,
                             pairsOfQueries(merge.segments, numA, numB)) != 0)
    message = "merges states that have absorbed the same pair";
  return message.empty();
}

/// Every pair that the mask does not rule out has been absorbed.
std::string Auditor::checkComplete(const Account &account) {
  const Attend &first = account.question->attend;
  int64_t numA = first.queryLayout.getNumSegments();
  int64_t numB = first.keyLayout.getNumSegments();
  for (int64_t owner = 0; owner < parts; ++owner) {
    PairMask absorbed = account.absorbed.at(owner);
    for (int64_t a = 0; a < numA; ++a)
      for (int64_t b = 0; b < numB; ++b) {
        bool isAbsorbed = (absorbed & pairBit(a, b, numB)) != 0;
        if (classifier.classify(first, owner, a, b) == PairClass::Empty) {
          ++(isAbsorbed ? proof.wasted : proof.dropped);
          continue;
        }
        if (!isAbsorbed)
          return format("lacks query segment {0} with segment {1} of rank {2}, "
                        "which no attend has computed",
                        a, b, owner);
      }
  }
  return "";
}

bool Auditor::finalize(ring::FinalizeOp op, State &state, TensorRef &out,
                       TensorRef &lse, std::string &message) {
  message = checkState(state);
  if (message.empty())
    message = checkUnchanged(state);
  if (!message.empty())
    return false;
  const auto &account = static_cast<const Account &>(*state.o);
  Sharding sharding = account.sharding;
  uint64_t wanted = segmentsOf(sharding, account.owner);
  if ((account.segments & wanted) != wanted)
    message = format("ends segments {0:x} of a state, of which it has {1:x}",
                     wanted, account.segments);
  else if (account.question)
    message = checkComplete(account);
  else if (wanted != 0)
    message = "ends a state that has attended nothing";
  if (!message.empty())
    return false;
  auto question = account.question;
  if (!Bookkeeper::finalize(op, state, out, lse, message))
    return false;
  for (const auto &[tensor, dim] : {std::pair(out, 1), {lse, 2}}) {
    if (auto part = std::dynamic_pointer_cast<Part>(tensor))
      part->state = 0; // A part of a state no longer.
    tensor->sharding = sharding;
    tensor->sharding.dim = dim;
    tensor->origin = std::make_shared<Origin>(Origin{question, dim});
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Transfers and results
//===----------------------------------------------------------------------===//

/// It belongs to the same state, of which it has what the segments absorbed
/// that have come.
TensorRef burst::arrivedPart(const Part &sent, const TensorRef &received) {
  TensorRef arrived = received;
  const auto *account = dynamic_cast<const Account *>(&sent);
  if (account)
    makePart<Account>(arrived, sent.name);
  else
    makePart<Part>(arrived, sent.name);
  arrived->argument = received->argument;
  arrived->owner = received->owner;
  arrived->sharding = received->sharding;
  arrived->segments = received->segments;
  arrived->slice = received->slice;
  static_cast<Part &>(*arrived).state = sent.state;
  if (!account || !account->question)
    return arrived;
  auto &copy = static_cast<Account &>(*arrived);
  copy.question = account->question;
  copy.absorbed = account->absorbed;
  int64_t numA = copy.question->attend.queryLayout.getNumSegments();
  int64_t numB = copy.question->attend.keyLayout.getNumSegments();
  copy.absorbed.restrict(pairsOfQueries(copy.segments, numA, numB));
  return arrived;
}

/// What a transfer brings, in words.
static StringRef nameOf(const Transfer &transfer) {
  std::optional<Made> share = transfer.share();
  if (!share)
    return "slice";
  return *share == Made::Gradient ? "gradient" : "state";
}

bool Auditor::start(const Transfer &transfer, int64_t slices,
                    std::string &message) {
  ring::StartOp start = transfer.start;
  const char *verb = start ? "sends" : "exchanges";
  for (auto [index, tensor] : llvm::enumerate(transfer.tensors)) {
    Sharding wanted;
    if (start) {
      wanted = {start.getLayout().getDeal(), start.getDims()[index],
                transfer.extent};
    } else {
      ring::ShardAttr source = cast<ring::ExchangeOp>(transfer.op).getSource();
      wanted = {source.getLayout().getDeal(), source.getDim(),
                source.getExtent()};
    }
    if (tensor->argument == -1 || (tensor->argument < 0 && !start))
      message = format("{0} a tensor that is no shard of an argument", verb);
    else if (tensor->owner != transfer.owner)
      message = format("{0} the shard of rank {1} as that of {2}", verb,
                       tensor->owner, transfer.owner);
    else if (tensor->sharding != wanted)
      message = format("{0} what is dealt as {1} as if it were dealt as {2}",
                       verb, describe(tensor->sharding), describe(wanted));
    else if ((tensor->segments & transfer.sendMask) != transfer.sendMask)
      message =
          format("{0} segments {1:x} of rank {2}, of which it has {3:x}", verb,
                 transfer.sendMask, transfer.owner, tensor->segments);
  }
  if (slices > options.maxSlices)
    message = format("receives a {0} while {1} are still needed, and there "
                     "are buffers for {2}",
                     nameOf(transfer), slices - 1, options.maxSlices);
  if (transfer.sendMask != 0)
    for (const TensorRef &tensor : transfer.tensors)
      ++sending[tensor.get()];
  return message.empty();
}

void Auditor::wait(const Transfer &transfer) {
  if (transfer.sendMask == 0)
    return;
  for (const TensorRef &tensor : transfer.tensors)
    if (auto found = sending.find(tensor.get()); --found->second == 0)
      sending.erase(found);
}

std::string Auditor::checkResult(int64_t rank, int64_t other, unsigned index,
                                 const Results &results) {
  const TensorRef &result = results[rank][index];
  if (const auto *gradient = dynamic_cast<const Gradient *>(result.get()))
    return checkGradient(rank, other, index, *gradient, results);
  if (!result || !result->origin ||
      !(isMade(*result, Made::Out) || isMade(*result, Made::Lse)))
    return "what no ring.finalize has made";
  if (result->owner != rank)
    return format("the attention of the queries of rank {0}", result->owner);
  if (std::string message = checkDealt(index, result->sharding);
      !message.empty())
    return message;
  const TensorRef &ofOther = results[other][index];
  if (!ofOther || !ofOther->origin)
    return format("another result than rank {0}", other);
  // A rank without queries may have attended nothing.
  const auto &asked = result->origin->question;
  const auto &askedByOther = ofOther->origin->question;
  if (!asked || !askedByOther)
    return "";
  std::string differs = difference(*askedByOther, *asked);
  if (!differs.empty())
    return format("an attention that {0} than that of rank {1}", differs,
                  other);
  return "";
}

/// The function says of a result how it is dealt.
std::string Auditor::checkDealt(unsigned index, const Sharding &made) {
  auto shard =
      program.getResultAttrOfType<ring::ShardAttr>(index, ring::shardAttr);
  if (!shard)
    return "a shard, and has no 'ring.shard' there";
  Sharding named{shard.getLayout().getDeal(), shard.getDim(),
                 ShapedType::isDynamic(shard.getExtent()) ? made.extent
                                                          : shard.getExtent()};
  if (made != named)
    return format("what is dealt as {0} as if it were dealt as {1}",
                  describe(made), describe(named));
  return "";
}

std::optional<int64_t> Auditor::checkResults(const Results &results,
                                             std::string &message) {
  for (auto [rank, ofRank] : llvm::enumerate(results))
    for (unsigned index = 0; index < ofRank.size(); ++index) {
      // All are compared with the first that holds anything.
      auto other = llvm::find_if(results, [&](const auto &ofOther) {
        return ofOther[index] && ofOther[index]->size() != 0;
      });
      int64_t number = other == results.end() ? 0 : other - results.begin();
      message = checkResult(rank, number, index, results);
      if (message.empty() && rank + 1 == results.size())
        message = checkTable(results, index);
      if (message.empty())
        continue;
      message = format("returns as result {0} {1}", index, message);
      return rank;
    }
  return std::nullopt;
}

std::optional<Counterexample> burst::prove(Simulation &simulation,
                                           ArrayRef<Argument> globals,
                                           const ProofOptions &options,
                                           Proof &proof) {
  simulation.reset();
  func::FuncOp program = simulation.getFunction();
  Auditor auditor(program, simulation.numRanks(), options, proof);
  if (!simulation.run(auditor,
                      shardGlobals(simulation, globals, ShardData::Omit)))
    return simulation.getCounterexample();
  proof.traffic = simulation.getTraffic();
  std::string message;
  if (auto rank = auditor.checkResults(simulation.getResults(), message))
    return Counterexample{*rank, 0, program.getBody().front().getTerminator(),
                          message};
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
      emitError(counterexample.loc.value_or(op->getLoc()))
      << "'" << op->getName() << "' op schedule refused: rank "
      << counterexample.rank << ", hop " << counterexample.hop << ": "
      << counterexample.message;
  diagnostic.attachNote(program.getLoc())
      << "in the program of a rank of " << SymbolRefAttr::get(program);
}
