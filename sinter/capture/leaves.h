#pragma once
// Arguments and results of compiled functions as flat lists of leaves: tensors, numbers, and containers of them. A struct
// takes part when it lists its fields: SINTER_FIELDS(hidden, mask).
#include <bit>
#include <cstring>
#include <map>
#include <typeinfo>
#include <unordered_map>

#include "sinter/base/api.h"
#include "sinter/base/error.h"
#include "sinter/capture/argument_types.h"
#include "sinter/capture/function.h"

namespace sinter SINTER_API {
namespace capture {

namespace detail {

// What a visitor does not care for.
struct IgnoreParts {
  void enter(const char*, const char*) {}
  template <class K>
  void enter_key(const K&) {}
  void enter_index(size_t) {}
  void leave() {}
  void check_field(const void*, size_t, const void*, bool, const char*) {}
};

template <Role role = Role::kArgument, class V, class T>
void walk(V& v, T& given);

// An element of a tuple by its own type: std::get() does not tell a reference from a value.
template <Role role, class Element, class V, class T>
void walk_element(V& v, T& element) {
  if constexpr (std::is_reference_v<Element>)
    (void)RefusedType<Element, Refusal::kReference>();
  else
    walk<role>(v, element);
}

// Calls the visitor on each leaf of `x`. The visitor is a template parameter, so that walking costs nothing.
template <Role role, class V, class T>
void walk(V& v, T& given) {
  using U = std::remove_cv_t<T>;
  constexpr Refusal why = refusal_of<T, role>();
  U& x = const_cast<U&>(given);
  if constexpr (why != Refusal::kNone) {
    (void)RefusedType<U, why>();
  } else if constexpr (std::is_same_v<U, Tensor>) {
    v.tensor(x);
  } else if constexpr (std::is_same_v<U, TensorArg>) {
    v.argument(x);
  } else if constexpr (std::is_same_v<U, Dim>) {
    v.size(x);
  } else if constexpr (std::is_same_v<U, Scalar>) {
    v.number(x);
  } else if constexpr (std::is_same_v<U, bool>) {
    v.exact(LeafKind::kBool, int64_t(x));
  } else if constexpr (std::is_integral_v<U> || std::is_enum_v<U>) {
    v.exact(LeafKind::kInt, int64_t(x));
  } else if constexpr (std::is_floating_point_v<U>) {
    v.exact(LeafKind::kFloat, std::bit_cast<int64_t>(double(x)));
  } else if constexpr (ComplexNumber<U>) {
    v.exact(LeafKind::kFloat, std::bit_cast<int64_t>(double(x.real())));
    v.exact(LeafKind::kFloat, std::bit_cast<int64_t>(double(x.imag())));
  } else if constexpr (is_text<U>) {
    if constexpr (std::is_pointer_v<U>) {
      v.exact(LeafKind::kCount, x != nullptr);
      if (!x) return;
    }
    v.text(std::string_view(x));
  } else if constexpr (ModulePointer<U>) {
    v.module(x);
  } else if constexpr (ModuleHandle<U>) {
    v.module(x.ptr().get());
  } else if constexpr (std::is_pointer_v<U>) {
    v.exact(LeafKind::kObject, int64_t(reinterpret_cast<uintptr_t>(x)));  // a function
  } else if constexpr (HasFields<U>) {
    x.visit_fields([&](const char* name, auto& field) {
      v.enter(".", name);
      v.check_field(&x, sizeof(U), &field, holds_values<decltype(field)>(), name);
      walk<role>(v, field);
      v.leave();
    });
  } else if constexpr (OptionalLike<U>) {
    v.exact(LeafKind::kPresent, x.has_value());
    if (x.has_value()) walk<role>(v, *x);
  } else if constexpr (MapLike<U>) {
    v.exact(LeafKind::kCount, int64_t(x.size()));
    for (auto& [key, value] : x) {
      walk<role>(v, key);
      v.enter_key(key);
      walk<role>(v, value);
      v.leave();
    }
  } else if constexpr (std::is_same_v<U, std::vector<bool>>) {
    v.exact(LeafKind::kCount, int64_t(x.size()));
    size_t i = 0;
    for (bool element : x) {
      v.enter_index(i++);
      walk<role>(v, element);
      v.leave();
    }
  } else if constexpr (ListLike<U>) {
    v.exact(LeafKind::kCount, int64_t(x.size()));
    size_t i = 0;
    for (auto& element : x) {
      v.enter_index(i++);
      walk<role>(v, element);
      v.leave();
    }
  } else {
    [&]<size_t... I>(std::index_sequence<I...>) {
      ((v.enter_index(I), walk_element<role, std::tuple_element_t<I, U>>(v, std::get<I>(x)), v.leave()), ...);
    }(std::make_index_sequence<std::tuple_size_v<U>>());
  }
}

// Fills an Invocation: the only walk that every call makes.
struct Flatten : IgnoreParts {
  explicit Flatten(Invocation& f) : invocation(f) {}
  Invocation& invocation;
  void tensor(Tensor& t) { invocation.tensors.push_back(&t); }
  void argument(TensorArg& a) {
    exact(LeafKind::kPresent, a.is_scalar());
    if (a.is_scalar())
      number(const_cast<Scalar&>(a.scalar()));
    else
      tensor(const_cast<Tensor&>(a.tensor()));
  }
  void size(Dim& d) { invocation.words.push_back(d.to_int()); }
  void number(Scalar& s) {
    invocation.words.push_back(int64_t(s.dtype()));
    if (s.is_complex()) {
      invocation.words.push_back(std::bit_cast<int64_t>(s.real()));
      invocation.words.push_back(std::bit_cast<int64_t>(s.imag()));
      return;
    }
    invocation.words.push_back(s.is_floating() ? std::bit_cast<int64_t>(s.to_double()) : s.to_int());
  }
  void exact(LeafKind, int64_t bits) { invocation.words.push_back(bits); }
  void module(const void* module) { invocation.words.push_back(int64_t(reinterpret_cast<uintptr_t>(module))); }
  void text(std::string_view text) {
    invocation.words.push_back(int64_t(text.size()));
    for (size_t at = 0; at < text.size(); at += 8) {
      int64_t word = 0;
      std::memcpy(&word, text.data() + at, std::min<size_t>(8, text.size() - at));
      invocation.words.push_back(word);
    }
  }
};

// Brings the leaves to a LeafVisitor.
struct Forward {
  LeafVisitor& to;
  void tensor(Tensor& t) { to.tensor(t); }
  void argument(TensorArg& a) {
    to.exact(LeafKind::kPresent, 1, a.is_scalar() ? "a number" : "a tensor");
    if (a.is_scalar()) {
      Scalar number = a.scalar();
      to.number(number);
      a = TensorArg(number, a.where());
    } else {
      Tensor tensor = a.tensor();
      to.tensor(tensor);
      a = TensorArg(tensor, a.where());
    }
  }
  void size(Dim& d) { to.size(d); }
  // A complex number is a part of the program: graphs have real operands alone.
  void number(Scalar& s) {
    if (s.is_complex())
      to.exact(LeafKind::kFloat, 3, to_string(s));
    else
      to.number(s);
  }
  void exact(LeafKind kind, int64_t bits) { to.exact(kind, 1, exact_text(kind, bits)); }
  // By identity, and with what guards watch of it: another module may come to lie at the same address.
  template <class M>
  void module(M* module) {
    exact(LeafKind::kObject, int64_t(reinterpret_cast<uintptr_t>(module)));
    if (!module) return;
    for (auto& state : const_cast<std::remove_const_t<M>*>(module)->watched()) depend_on(state);
  }
  // A member that is a reference would let a capture replace what it refers to.
  void check_field(const void* object, size_t bytes, const void* field, bool holds_values, const char* name) {
    auto at = static_cast<const char*>(field), begin = static_cast<const char*>(object);
    check(!holds_values || (at >= begin && at < begin + bytes),
          "compile: the field '{}' of an argument is a reference, which would be a look at the caller's own: hold the value",
          name);
  }
  void text(std::string_view text) { to.exact(LeafKind::kText, 1 + (text.size() + 7) / 8, '"' + std::string(text) + '"'); }
  void enter(const char* separator, const char* name) { to.enter(std::string(separator) + name); }
  template <class K>
  void enter_key(const K& key) {
    if constexpr (is_text<K>)
      to.enter("[\"" + std::string(key) + "\"]");
    else if constexpr (std::is_arithmetic_v<K>)
      to.enter("[" + std::to_string(key) + "]");
    else
      to.enter("[key]");
  }
  void enter_index(size_t i) { to.enter("[" + std::to_string(i) + "]"); }
  void leave() { to.leave(); }
};

// Fills a copy of the prototype with what a call gave.
struct Fill : IgnoreParts {
  explicit Fill(Results& r) : results(r) {}
  Results& results;
  size_t tensors = 0, sizes = 0, numbers = 0;
  void tensor(Tensor& t) { t = std::move(results.tensors[tensors++]); }
  void argument(TensorArg&) {}
  void size(Dim& d) { d = results.sizes[sizes++]; }
  void number(Scalar& s) {
    if (s.is_complex()) return;
    const Tensor& given = results.numbers[numbers++];
    if (given.defined()) s = given.item();
  }
  void exact(LeafKind, int64_t) {}
  void module(const void*) {}
  void text(std::string_view) {}
};

// The numbers among the listed fields of a function object.
struct HashState : IgnoreParts {
  uint64_t hash = 0;
  // By identity: what is written into a tensor is seen anyway.
  void tensor(Tensor& t) { module(t.defined() ? t.impl_ptr().get() : nullptr); }
  void argument(TensorArg&) {}
  void size(Dim& d) { exact(LeafKind::kInt, d.to_int()); }
  void number(Scalar& s) {
    if (s.is_complex()) {
      exact(LeafKind::kFloat, std::bit_cast<int64_t>(s.real()));
      return exact(LeafKind::kFloat, std::bit_cast<int64_t>(s.imag()));
    }
    exact(LeafKind::kInt, s.is_floating() ? std::bit_cast<int64_t>(s.to_double()) : s.to_int());
  }
  void exact(LeafKind, int64_t bits) { hash = hash_state(&bits, sizeof(bits), hash); }
  void module(const void* module) { exact(LeafKind::kInt, int64_t(reinterpret_cast<uintptr_t>(module))); }
  void text(std::string_view text) { hash = hash_state(text.data(), text.size(), hash); }
};

// What a guard can see of a function object: listed fields, else its bytes. What is reached by reference or pointer cannot
// be seen, nor what containers among its members hold. Of the object behind a member function, which is the caller's and
// may change in ways that concern nobody, plain data alone counts.
template <class F>
int64_t state_of(F& f) {
  using U = std::remove_cv_t<F>;
  if constexpr (HasFields<U>) {
    HashState state;
    walk(state, f);
    return int64_t(state.hash);
  } else if constexpr (requires { f.guarded_object(); }) {
    auto& object = *f.guarded_object();
    using Object = std::remove_cvref_t<decltype(object)>;
    if constexpr (HasFields<Object> || (std::is_trivially_copyable_v<Object> && !std::is_empty_v<Object>))
      return state_of(object);
    else
      return 0;
  } else if constexpr (!std::is_empty_v<U> && !std::is_pointer_v<U>) {
    return int64_t(hash_state(&f, sizeof(f), 0));
  } else {
    return 0;
  }
}

}  // namespace detail

template <class R>
struct ResultOf final : ResultBox {
  R value;
  explicit ResultOf(R v) : value(std::move(v)) {}
  void visit(LeafVisitor& visitor) override {
    detail::Forward forward{visitor};
    detail::walk<Role::kResult>(forward, value);
  }
};

// A call of `f` on these arguments. `Stored` are the parameter types without references.
template <class F, class... Stored>
class InvocationOf final : public Invocation {
 public:
  using R = std::remove_cvref_t<std::invoke_result_t<F&, const Stored&...>>;

  InvocationOf(F& f, const Stored&... arguments) : f_(f), arguments_(arguments...) {
    static const char tag = 0;
    types = int64_t(reinterpret_cast<uintptr_t>(&tag));
    state = detail::state_of(f);
    [[maybe_unused]] detail::Flatten flatten(*this);
    (detail::walk(flatten, arguments), ...);
  }

  void describe(LeafVisitor& visitor) override {
    std::tuple<Stored...> copy(arguments_);
    visit(copy, visitor);
  }

  std::shared_ptr<ResultBox> invoke(LeafVisitor& replace) override {
    std::tuple<Stored...> copy(arguments_);
    visit(copy, replace);
    if constexpr (std::is_void_v<R>) {
      std::apply([&](const auto&... argument) { std::invoke(f_, argument...); }, copy);
      return nullptr;
    } else {
      return std::make_shared<ResultOf<R>>(
          std::apply([&](const auto&... argument) -> R { return std::invoke(f_, argument...); }, copy));
    }
  }

  std::shared_ptr<ResultBox> blank_result() const override {
    if constexpr (!std::is_void_v<R> && std::is_default_constructible_v<R>)
      return std::make_shared<ResultOf<R>>(R{});
    else
      return nullptr;
  }
  const char* type_name() const override { return typeid(InvocationOf).name(); }

 private:
  static void visit(std::tuple<Stored...>& arguments, LeafVisitor& visitor) {
    detail::Forward forward{visitor};
    size_t i = 0;
    std::apply(
        [&](auto&... argument) {
          ((visitor.enter("argument " + std::to_string(i++)), detail::walk(forward, argument), visitor.leave()), ...);
        },
        arguments);
  }

  F& f_;
  std::tuple<const Stored&...> arguments_;
};

}  // namespace capture
}  // namespace sinter
