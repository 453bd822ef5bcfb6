#pragma once
// Arguments and results of compiled functions as flat lists of leaves: tensors, numbers, and containers of them. A struct
// takes part when it lists its fields: SINTER_FIELDS(hidden, mask).
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <typeinfo>
#include <unordered_map>
#include <vector>

#include "sinter/base/hash.h"
#include "sinter/capture/frame.h"

namespace sinter::capture {

namespace detail {

template <class T>
concept HasFields = requires(T& t) { t.visit_fields([](const char*, auto&) {}); };
template <class T>
concept TupleLike = requires { std::tuple_size<T>::value; };
template <class T>
concept MapLike = requires(T& t) {
  typename T::mapped_type;
  t.begin();
};
template <class T>
concept ListLike = requires(T& t) {
  t.begin();
  t.size();
} && !MapLike<T>;
template <class T>
concept OptionalLike = requires(T& t) {
  t.has_value();
  *t;
};
template <class T>
inline constexpr bool is_text = std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view> ||
                                std::is_same_v<T, const char*>;
template <class T>
inline constexpr bool unsupported = false;

// Whether values of a type have leaves.
template <class T>
constexpr bool walkable() {
  using U = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<U, Tensor> || std::is_same_v<U, TensorArg> || std::is_same_v<U, Dim> ||
                std::is_same_v<U, Scalar> || std::is_arithmetic_v<U> || std::is_enum_v<U> || is_text<U> ||
                std::is_pointer_v<U> || HasFields<U> || requires(U& u) { u.ptr(); })
    return true;
  else if constexpr (std::is_same_v<U, std::vector<bool>>)
    return true;
  else if constexpr (OptionalLike<U>)
    return walkable<decltype(*std::declval<U&>())>();
  else if constexpr (MapLike<U>)
    return walkable<typename U::key_type>() && walkable<typename U::mapped_type>();
  else if constexpr (ListLike<U>)
    return walkable<decltype(*std::declval<U&>().begin())>();
  else if constexpr (TupleLike<U>)
    return []<size_t... I>(std::index_sequence<I...>) {
      return (walkable<std::tuple_element_t<I, U>>() && ...);
    }(std::make_index_sequence<std::tuple_size_v<U>>());
  else
    return false;
}

// Calls the visitor on each leaf of `x`. The visitor is a template parameter, so that walking costs nothing.
template <class V, class T>
void walk(V& v, T& given) {
  using U = std::remove_cv_t<T>;
  U& x = const_cast<U&>(given);
  if constexpr (std::is_same_v<U, Tensor>) {
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
  } else if constexpr (is_text<U>) {
    v.text(std::string_view(x));
  } else if constexpr (std::is_pointer_v<U>) {
    v.exact(LeafKind::kObject, int64_t(reinterpret_cast<uintptr_t>(x)));
  } else if constexpr (HasFields<U>) {
    x.visit_fields([&](const char* name, auto& field) {
      v.enter(".", name);
      walk(v, field);
      v.leave();
    });
  } else if constexpr (OptionalLike<U>) {
    v.exact(LeafKind::kPresent, x.has_value());
    if (x.has_value()) walk(v, *x);
  } else if constexpr (MapLike<U>) {
    v.exact(LeafKind::kCount, int64_t(x.size()));
    for (auto& [key, value] : x) {
      walk(v, key);
      v.enter_key(key);
      walk(v, value);
      v.leave();
    }
  } else if constexpr (std::is_same_v<U, std::vector<bool>>) {
    v.exact(LeafKind::kCount, int64_t(x.size()));
    size_t i = 0;
    for (bool element : x) {
      v.enter_index(i++);
      walk(v, element);
      v.leave();
    }
  } else if constexpr (ListLike<U>) {
    v.exact(LeafKind::kCount, int64_t(x.size()));
    size_t i = 0;
    for (auto& element : x) {
      v.enter_index(i++);
      walk(v, element);
      v.leave();
    }
  } else if constexpr (TupleLike<U>) {
    size_t i = 0;
    std::apply([&](auto&... element) { ((v.enter_index(i++), walk(v, element), v.leave()), ...); }, x);
  } else if constexpr (requires { x.ptr(); }) {
    v.exact(LeafKind::kObject, int64_t(reinterpret_cast<uintptr_t>(x.ptr().get())));  // a module: by identity
  } else {
    static_assert(unsupported<U>,
                  "compile: arguments and results are tensors, numbers, text, and containers or structs of them; list the "
                  "fields of a struct with SINTER_FIELDS(...)");
  }
}

// Fills a Frame: the only walk that every call makes.
struct Flatten {
  Frame& frame;
  void tensor(Tensor& t) { frame.tensors.push_back(&t); }
  void argument(TensorArg& a) {
    exact(LeafKind::kPresent, a.is_scalar());
    if (a.is_scalar())
      number(const_cast<Scalar&>(a.scalar()));
    else
      tensor(const_cast<Tensor&>(a.tensor()));
  }
  void size(Dim& d) { frame.words.push_back(d.to_int()); }
  void number(Scalar& s) {
    frame.words.push_back(int64_t(s.dtype()));
    frame.words.push_back(s.is_floating() ? std::bit_cast<int64_t>(s.to_double()) : s.to_int());
  }
  void exact(LeafKind, int64_t bits) { frame.words.push_back(bits); }
  void text(std::string_view text) {
    frame.words.push_back(int64_t(text.size()));
    for (size_t at = 0; at < text.size(); at += 8) {
      int64_t word = 0;
      std::memcpy(&word, text.data() + at, std::min<size_t>(8, text.size() - at));
      frame.words.push_back(word);
    }
  }
  void enter(const char*, const char*) {}
  template <class K>
  void enter_key(const K&) {}
  void enter_index(size_t) {}
  void leave() {}
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
  void number(Scalar& s) { to.number(s); }
  void exact(LeafKind kind, int64_t bits) {
    to.exact(kind, 1, exact_text(kind, bits));
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
struct Fill {
  Results& results;
  size_t tensors = 0, sizes = 0, numbers = 0;
  void tensor(Tensor& t) { t = std::move(results.tensors[tensors++]); }
  void argument(TensorArg&) {}
  void size(Dim& d) { d = results.sizes[sizes++]; }
  void number(Scalar& s) {
    const Tensor& given = results.numbers[numbers++];
    if (given.defined()) s = given.item();
  }
  void exact(LeafKind, int64_t) {}
  void text(std::string_view) {}
  void enter(const char*, const char*) {}
  template <class K>
  void enter_key(const K&) {}
  void enter_index(size_t) {}
  void leave() {}
};

// The numbers among the listed fields of a function object.
struct HashState {
  uint64_t hash = 0;
  void tensor(Tensor&) {}
  void argument(TensorArg&) {}
  void size(Dim& d) { exact(LeafKind::kInt, d.to_int()); }
  void number(Scalar& s) { exact(LeafKind::kInt, s.is_floating() ? std::bit_cast<int64_t>(s.to_double()) : s.to_int()); }
  void exact(LeafKind, int64_t bits) { hash = hash_mix(hash, uint64_t(bits)); }
  void text(std::string_view text) { hash = hash_text(text, hash); }
  void enter(const char*, const char*) {}
  template <class K>
  void enter_key(const K&) {}
  void enter_index(size_t) {}
  void leave() {}
};

// What a guard can see of a function object: listed fields, or the bytes of plain data. What is reached by reference
// cannot be seen.
template <class F>
int64_t state_of(F& f) {
  using U = std::remove_cv_t<F>;
  if constexpr (HasFields<U>) {
    HashState state;
    walk(state, f);
    return int64_t(state.hash);
  } else if constexpr (requires { f.guarded_object(); }) {
    return state_of(*f.guarded_object());
  } else if constexpr (std::is_trivially_copyable_v<U> && !std::is_empty_v<U> && !std::is_pointer_v<U>) {
    return int64_t(hash_text(std::string_view(reinterpret_cast<const char*>(&f), sizeof(f))));
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
    detail::walk(forward, value);
  }
};

// A call of `f` on these arguments. `Stored` are the parameter types without references.
template <class F, class... Stored>
class FrameOf final : public Frame {
 public:
  using R = std::remove_cvref_t<std::invoke_result_t<F&, Stored&...>>;

  FrameOf(F& f, const Stored&... arguments) : f_(f), arguments_(arguments...) {
    static const char tag = 0;
    types = int64_t(reinterpret_cast<uintptr_t>(&tag));
    state = detail::state_of(f);
    [[maybe_unused]] detail::Flatten flatten{*this};
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
      std::apply([&](auto&... argument) { std::invoke(f_, argument...); }, copy);
      return nullptr;
    } else {
      return std::make_shared<ResultOf<R>>(
          std::apply([&](auto&... argument) -> R { return std::invoke(f_, argument...); }, copy));
    }
  }

  std::shared_ptr<ResultBox> blank_result() const override {
    if constexpr (!std::is_void_v<R> && std::is_default_constructible_v<R>)
      return std::make_shared<ResultOf<R>>(R{});
    else
      return nullptr;
  }
  const char* type_name() const override { return typeid(FrameOf).name(); }

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

}  // namespace sinter::capture
