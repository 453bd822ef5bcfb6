// LAPACK by its Fortran names, from a library that is opened when first wanted.
#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "sinter/base/dynamic_library.h"
#include "sinter/base/log.h"
#include "sinter/ops/dense.h"

namespace sinter {

namespace {

const DynamicLibrary* library() {
  static const DynamicLibrary* const found = []() -> const DynamicLibrary* {
    for (const char* name : {"libopenblas.so.0", "liblapack.so.3"}) {
      auto file = DynamicLibrary::try_open(name);
      // All or nothing: what one lacks the textbook does.
      if (!file || !file->find_symbol("dgesdd_") || !file->find_symbol("dgemm_")) continue;
      // A batch is spread over our own pool; threads of the library's would fight it.
      if (void* limit = file->find_symbol("openblas_set_num_threads")) reinterpret_cast<void (*)(int)>(limit)(1);
      return new DynamicLibrary(std::move(*file));
    }
    log(LogTopic::kPerf, "linalg: no LAPACK here, factorisations run by plain loops; install libopenblas0-pthread");
    return nullptr;
  }();
  return found;
}

// A number that Fortran takes by its address.
using Int = const int*;
// The lengths of character arguments, which come last.
using Length = size_t;

template <class T>
struct Functions {
  void (*getrf)(Int m, Int n, T* a, Int lda, int* pivots, int* info);
  void (*potrf)(const char* uplo, Int n, T* a, Int lda, int* info, Length);
  void (*geqrf)(Int m, Int n, T* a, Int lda, T* tau, T* work, Int lwork, int* info);
  void (*orgqr)(Int m, Int n, Int k, T* a, Int lda, const T* tau, T* work, Int lwork, int* info);
  void (*sytrf)(const char* uplo, Int n, T* a, Int lda, int* pivots, T* work, Int lwork, int* info, Length);
  void (*geev)(const char* left, const char* right, Int n, T* a, Int lda, T* re, T* im, T* vl, Int ldvl, T* vr,
               Int ldvr, T* work, Int lwork, int* info, Length, Length);
  // Of complex numbers, which lie as pairs.
  void (*complex_geev)(const char* left, const char* right, Int n, T* a, Int lda, T* values, T* vl, Int ldvl, T* vr,
                       Int ldvr, T* work, Int lwork, T* real_work, int* info, Length, Length);
  void (*syevd)(const char* job, const char* uplo, Int n, T* a, Int lda, T* w, T* work, Int lwork, int* iwork,
                Int liwork, int* info, Length, Length);
  void (*gesdd)(const char* job, Int m, Int n, T* a, Int lda, T* s, T* u, Int ldu, T* vt, Int ldvt, T* work, Int lwork,
                int* iwork, int* info, Length);
  void (*trsm)(const char* side, const char* uplo, const char* trans, const char* diag, Int m, Int n, const T* alpha,
               const T* a, Int lda, T* b, Int ldb, Length, Length, Length, Length);
  void (*gemm)(const char* trans_a, const char* trans_b, Int m, Int n, Int k, const T* alpha, const T* a, Int lda,
               const T* b, Int ldb, const T* beta, T* c, Int ldc, Length, Length);

  Functions() {
    const std::string real = std::is_same_v<T, float> ? "s" : "d", complex = std::is_same_v<T, float> ? "c" : "z";
    auto bind_as = [&](auto& function, const std::string& name) {
      function = library()->function<std::remove_reference_t<decltype(function)>>(name + "_");
    };
    auto bind = [&](auto& function, const char* name) { bind_as(function, real + name); };
    bind(getrf, "getrf");
    bind(potrf, "potrf");
    bind(geqrf, "geqrf");
    bind(orgqr, "orgqr");
    bind(sytrf, "sytrf");
    bind(geev, "geev");
    bind_as(complex_geev, complex + "geev");
    bind(syevd, "syevd");
    bind(gesdd, "gesdd");
    bind(trsm, "trsm");
    bind(gemm, "gemm");
  }
};

template <class T>
const Functions<T>& functions() {
  static const Functions<T> all;
  return all;
}

// The workspace that a function asks for when it is given a length of -1.
template <class T, class F>
std::vector<T> workspace(F&& ask) {
  T wanted = 0;
  int query = -1;
  ask(&wanted, &query);
  return std::vector<T>(size_t(std::max<T>(wanted, 1)) + 1);
}

template <class T>
int lu(int64_t rows, int64_t columns, T* a, int32_t* pivots) {
  int m = int(rows), n = int(columns), info = 0;
  functions<T>().getrf(&m, &n, a, &m, pivots, &info);
  return info;
}

template <class T>
int cholesky(int64_t size, T* a) {
  int n = int(size), info = 0;
  functions<T>().potrf("L", &n, a, &n, &info, 1);
  return info;
}

template <class T>
int qr(int64_t rows, int64_t columns, T* a, T* tau) {
  int m = int(rows), n = int(columns), info = 0;
  auto& f = functions<T>();
  auto work = workspace<T>([&](T* w, Int size) { f.geqrf(&m, &n, a, &m, tau, w, size, &info); });
  int length = int(work.size());
  f.geqrf(&m, &n, a, &m, tau, work.data(), &length, &info);
  return info;
}

template <class T>
int reflections(int64_t rows, int64_t columns, int64_t count, T* q, const T* tau) {
  int m = int(rows), n = int(columns), k = int(count), info = 0;
  auto& f = functions<T>();
  auto work = workspace<T>([&](T* w, Int size) { f.orgqr(&m, &n, &k, q, &m, tau, w, size, &info); });
  int length = int(work.size());
  f.orgqr(&m, &n, &k, q, &m, tau, work.data(), &length, &info);
  return info;
}

template <class T>
int ldl(int64_t size, T* a, int32_t* pivots) {
  int n = int(size), info = 0;
  auto& f = functions<T>();
  auto work = workspace<T>([&](T* w, Int length) { f.sytrf("L", &n, a, &n, pivots, w, length, &info, 1); });
  int length = int(work.size());
  f.sytrf("L", &n, a, &n, pivots, work.data(), &length, &info, 1);
  return info;
}

template <class T>
int eig(int64_t size, T* a, T* values, T* vectors) {
  int n = int(size), one = 1, info = 0;
  const char* right = vectors ? "V" : "N";
  std::vector<T> re(size_t(n), T(0)), im(size_t(n), T(0)), found(size_t(vectors ? n * n : 1));
  auto& f = functions<T>();
  auto run = [&](T* work, Int length) {
    f.geev("N", right, &n, a, &n, re.data(), im.data(), nullptr, &one, found.data(), &n, work, length, &info, 1, 1);
  };
  auto work = workspace<T>(run);
  int length = int(work.size());
  run(work.data(), &length);
  for (int64_t j = 0; j < size; ++j) values[2 * j] = re[size_t(j)], values[2 * j + 1] = im[size_t(j)];
  if (!vectors) return info;
  // Of a conjugate pair the real and the imaginary part stand in the columns of both.
  for (int64_t j = 0; j < size; ++j) {
    const bool first = im[size_t(j)] > 0, second = im[size_t(j)] < 0;
    const T *real = found.data() + (second ? j - 1 : j) * size, *imaginary = real + size, sign = T(second ? -1 : 1);
    for (int64_t i = 0; i < size; ++i) {
      vectors[2 * (j * size + i)] = real[i];
      vectors[2 * (j * size + i) + 1] = first || second ? sign * imaginary[i] : T(0);
    }
  }
  return info;
}

template <class T>
int eig_of_pairs(int64_t size, T* a, T* values, T* vectors) {
  int n = int(size), one = 1, info = 0;
  const char* right = vectors ? "V" : "N";
  std::vector<T> reals(size_t(2 * n));
  auto& f = functions<T>();
  auto run = [&](T* work, Int length) {
    f.complex_geev("N", right, &n, a, &n, values, nullptr, &one, vectors, &n, work, length, reals.data(), &info, 1, 1);
  };
  T wanted[2] = {0, 0};
  int length = -1;
  run(wanted, &length);
  length = std::max(int(wanted[0]), 2 * n) + 1;
  std::vector<T> work(size_t(2 * length));
  run(work.data(), &length);
  return info;
}

template <class T>
int eigh(int64_t size, T* a, T* values, bool vectors) {
  int n = int(size), info = 0, places = 0, query = -1;
  const char* job = vectors ? "V" : "N";
  auto& f = functions<T>();
  auto work = workspace<T>(
      [&](T* w, Int length) { f.syevd(job, "L", &n, a, &n, values, w, length, &places, &query, &info, 1, 1); });
  std::vector<int> integers(size_t(std::max(places, 1)));
  int length = int(work.size()), integer_length = int(integers.size());
  f.syevd(job, "L", &n, a, &n, values, work.data(), &length, integers.data(), &integer_length, &info, 1, 1);
  return info;
}

template <class T>
int svd(int64_t rows, int64_t columns, T* a, T* u, T* s, T* vt) {
  int m = int(rows), n = int(columns), k = std::min(m, n), info = 0;
  const char* job = u ? "S" : "N";
  std::vector<int> integers(size_t(8 * k));
  auto& f = functions<T>();
  auto work = workspace<T>(
      [&](T* w, Int length) { f.gesdd(job, &m, &n, a, &m, s, u, &m, vt, &k, w, length, integers.data(), &info, 1); });
  int length = int(work.size());
  f.gesdd(job, &m, &n, a, &m, s, u, &m, vt, &k, work.data(), &length, integers.data(), &info, 1);
  return info;
}

template <class T>
void solve_triangular(int64_t size, int64_t columns, const T* a, T* b, bool upper, bool unit) {
  int n = int(size), m = int(columns);
  const T one = 1;
  functions<T>().trsm("L", upper ? "U" : "L", "N", unit ? "U" : "N", &n, &m, &one, a, &n, b, &n, 1, 1, 1, 1);
}

template <class T>
void multiply(int64_t size, const T* a, const T* b, T* c) {
  int n = int(size);
  const T one = 1, zero = 0;
  functions<T>().gemm("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n, 1, 1);
}

}  // namespace

template <class T>
const Dense<T>* lapack() {
  static const Dense<T> table{lu<T>,  cholesky<T>,     qr<T>,  reflections<T>,      ldl<T>,     eigh<T>,
                              eig<T>, eig_of_pairs<T>, svd<T>, solve_triangular<T>, multiply<T>};
  return library() ? &table : nullptr;
}
template const Dense<float>* lapack<float>();
template const Dense<double>* lapack<double>();

}  // namespace sinter
