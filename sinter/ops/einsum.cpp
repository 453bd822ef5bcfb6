#include "sinter/ops/matmul.h"

#include <algorithm>
#include <map>

#include "sinter/ops/contract.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

// A dimension's name: a letter, or kEllipsis + its position counted from the end of "...".
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 256;

bool has(const Labels& labels, Label l) { return std::find(labels.begin(), labels.end(), l) != labels.end(); }
int64_t position(const Labels& labels, Label l) { return std::find(labels.begin(), labels.end(), l) - labels.begin(); }

// Reads one term of the equation; `rank` is the number of dimensions it must name (-1: as many as it names, with
// `ellipsis_rank` for "...").
Labels read_term(std::string_view equation, std::string_view term, int64_t rank, int64_t ellipsis_rank) {
  Labels labels;
  int64_t letters =
      std::count_if(term.begin(), term.end(), [](char c) { return std::isalpha(static_cast<unsigned char>(c)); });
  bool ellipsis = false;
  for (size_t i = 0; i < term.size(); ++i) {
    char c = term[i];
    if (c == ' ') continue;
    if (std::isalpha(static_cast<unsigned char>(c))) {
      labels.push_back(c);
      continue;
    }
    check(term.substr(i, 3) == "..." && !ellipsis, "einsum: '{}' is not a letter, in the equation \"{}\"",
          std::string(1, c), equation);
    ellipsis = true;
    i += 2;
    int64_t count = rank < 0 ? ellipsis_rank : rank - letters;
    for (int64_t d = count; d > 0; --d) labels.push_back(kEllipsis + int(d));
  }
  check(rank < 0 || int64_t(labels.size()) == rank, "einsum: the term \"{}\" names {} dimensions, its operand has {}",
        std::string(term), labels.size(), rank);
  return labels;
}

// A tensor whose dimensions are named.
struct Named {
  Tensor tensor;
  Labels labels;

  // Repeated letters become one: the diagonal of their dimensions.
  void take_diagonals() {
    for (size_t i = 0; i < labels.size();) {
      auto twin = std::find(labels.begin() + ptrdiff_t(i) + 1, labels.end(), labels[i]);
      if (twin == labels.end()) {
        ++i;
        continue;
      }
      int64_t j = twin - labels.begin();
      check(tensor.size(int64_t(i)) == tensor.size(j), "einsum: '{}' names sizes {} and {} of one operand of shape {}",
            std::string(1, char(labels[i])), tensor.size(int64_t(i)), tensor.size(j), tensor.sizes());
      // diagonal() moves the dimension to the end.
      tensor = tensor.diagonal(0, int64_t(i), j);
      Label l = labels[i];
      labels.erase(twin);
      labels.erase(labels.begin() + ptrdiff_t(i));
      labels.push_back(l);
    }
  }
  void sum_out(const auto& unwanted) {
    IntList dims;
    Labels rest;
    for (size_t d = 0; d < labels.size(); ++d)
      if (unwanted(labels[d]))
        dims.push_back(int64_t(d));
      else
        rest.push_back(labels[d]);
    if (dims.empty()) return;
    tensor = tensor.sum(dims);
    labels = rest;
  }
  // Dimensions in this order; one that is missing becomes a new one of size 1.
  Tensor arranged(const Labels& order) const {
    IntList dims;
    Tensor t = tensor;
    Labels all = labels;
    for (Label l : order)
      if (!has(all, l)) {
        t = t.unsqueeze(-1);
        all.push_back(l);
      }
    for (Label l : order) dims.push_back(position(all, l));
    return t.permute(dims);
  }
};

using Sizes = std::map<Label, Dim>;

Dim product(const Labels& labels, const Sizes& sizes) {
  Dim n = 1;
  for (Label l : labels) n *= sizes.at(l);
  return n;
}
void append_sizes(Shape& shape, const Labels& labels, const Sizes& sizes) {
  for (Label l : labels) shape.push_back(sizes.at(l));
}
Labels joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// One matrix dimension a group of labels, sizes of 1 expanded to the common size where both operands have the label.
Tensor as_matrices(const Named& x, const Labels& batch, const Labels& rows, const Labels& columns, const Sizes& sizes) {
  Shape full;
  for (auto* group : {&batch, &rows, &columns}) append_sizes(full, *group, sizes);
  Tensor t = x.arranged(joined(joined(batch, rows), columns));
  return t.expand(full).reshape({product(batch, sizes), product(rows, sizes), product(columns, sizes)});
}

// Contracts the labels of a and b that are not wanted any more.
Named contract(Named a, Named b, const Labels& wanted) {
  a.sum_out([&](Label l) { return !has(b.labels, l) && !has(wanted, l); });
  b.sum_out([&](Label l) { return !has(a.labels, l) && !has(wanted, l); });
  Labels batch, inner, left, right;
  Sizes sizes;
  for (size_t d = 0; d < a.labels.size(); ++d) {
    Label l = a.labels[d];
    (!has(b.labels, l) ? left : has(wanted, l) ? batch : inner).push_back(l);
    sizes[l] = a.tensor.size(int64_t(d));
  }
  for (size_t d = 0; d < b.labels.size(); ++d) {
    Label l = b.labels[d];
    Dim size = b.tensor.size(int64_t(d));
    if (!has(a.labels, l)) right.push_back(l);
    auto [it, fresh] = sizes.emplace(l, size);
    if (!fresh && it->second == 1) it->second = size;
  }
  Labels result = joined(joined(batch, left), right);
  if (inner.empty()) return {a.arranged(result) * b.arranged(result), result};
  Tensor x = as_matrices(a, batch, left, inner, sizes), y = as_matrices(b, batch, inner, right, sizes);
  Shape shape;
  append_sizes(shape, result, sizes);
  Tensor z = batch.empty() ? mm(x.squeeze(0), y.squeeze(0)) : bmm(x, y);
  return {z.reshape(shape), result};
}

}  // namespace

namespace {

// "[2, 3], [4]".
std::string shapes_text(const TensorList& tensors) {
  std::string text;
  for (auto& t : tensors) text += (text.empty() ? "" : ", ") + to_string(t.sizes());
  return text;
}

}  // namespace

Tensor einsum(std::string_view equation, const TensorList& operands, Where where) {
  UserPosition here(where);
  check(!operands.empty(), "einsum: needs at least one operand");
  auto arrow = equation.find("->");
  std::string_view left = equation.substr(0, arrow);
  std::vector<std::string_view> terms;
  for (size_t begin = 0; begin <= left.size();) {
    size_t end = std::min(left.find(',', begin), left.size());
    terms.push_back(left.substr(begin, end - begin));
    begin = end + 1;
  }
  check(terms.size() == operands.size(), "einsum: the equation \"{}\" has {} operands, {} were given",
        std::string(equation), terms.size(), operands.size());

  std::vector<Named> inputs;
  std::map<Label, int> uses;
  Sizes sizes;
  int64_t ellipsis_rank = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    Named x{operands[i], read_term(equation, terms[i], operands[i].dim(), 0)};
    for (Label l : x.labels) {
      ++uses[l];
      if (l > kEllipsis) ellipsis_rank = std::max<int64_t>(ellipsis_rank, l - kEllipsis);
    }
    x.take_diagonals();
    for (size_t d = 0; d < x.labels.size(); ++d) {
      Dim size = x.tensor.size(int64_t(d));
      auto [it, fresh] = sizes.emplace(x.labels[d], size);
      if (fresh || it->second == size || size == 1) continue;
      check(it->second == 1, "einsum: a dimension has sizes {} and {} in the equation \"{}\" (shapes {})", it->second, size,
            std::string(equation), shapes_text(operands));
      it->second = size;
    }
    inputs.push_back(std::move(x));
  }

  Labels output;
  if (arrow != std::string_view::npos) {
    output = read_term(equation, equation.substr(arrow + 2), -1, ellipsis_rank);
    for (size_t d = 0; d < output.size(); ++d) {
      check(uses.count(output[d]) > 0, "einsum: the result of \"{}\" names '{}', which no operand has",
            std::string(equation), std::string(1, char(output[d])));
      check(position(output, output[d]) == int64_t(d), "einsum: the result of \"{}\" names a dimension twice",
            std::string(equation));
    }
  } else {
    for (int64_t d = ellipsis_rank; d > 0; --d) output.push_back(kEllipsis + int(d));
    for (auto& [label, count] : uses)
      if (label < kEllipsis && count == 1) output.push_back(label);
  }

  Named result = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) {
    Labels wanted = output;
    for (size_t j = i + 1; j < inputs.size(); ++j) wanted = joined(wanted, inputs[j].labels);
    result = contract(std::move(result), inputs[i], wanted);
  }
  result.sum_out([&](Label l) { return !has(output, l); });
  return result.arranged(output);
}

}  // namespace sinter
