// linalg.cpp - decompositions and systems of equations.
#include "compute.h"
#include "kernels.h"

#include <koine/linalg.h>

namespace koine
{
namespace
{

void check_info(const at::Tensor &info, bool check_errors, const char *name)
{
    if (check_errors && info.numel() > 0)
        TORCH_CHECK_LINALG(!info.any().item<bool>(), name, ": the factorization could not be completed");
}

void factor(const at::Tensor &a, at::Tensor &lu, at::Tensor &pivots, at::Tensor *info)
{
    kn_tensor *rows = nullptr, *code = nullptr;
    set(lu, kn_linalg_lu_factor_ex(as_koine(a).get(), &rows, &code));
    set(pivots, rows);
    const at::Tensor failed = from_koine(code);
    if (info)
        set(*info, failed);
}

// For determinants PyTorch factors the transpose of a row-major matrix, and their gradients count on that.
at::Tensor column_major(const at::Tensor &a) { return a.is_contiguous() ? a.mT() : a; }

// --- positive definite, triangular -----------------------------------------------------------------------------------

std::tuple<at::Tensor &, at::Tensor &> cholesky_out(const at::Tensor &a, bool upper, bool check_errors, at::Tensor &l,
                                                    at::Tensor &info)
{
    kn_tensor *code = nullptr;
    set(l, kn_linalg_cholesky_ex(as_koine(a).get(), upper, &code));
    set(info, code);
    check_info(info, check_errors, "linalg.cholesky_ex");
    return {l, info};
}

at::Tensor solve_triangular(const at::Tensor &a, const at::Tensor &b, bool upper, bool left, bool unitriangular)
{
    return from_koine(kn_linalg_solve_triangular(as_koine(a).get(), as_koine(b).get(), upper, left, unitriangular));
}

at::Tensor &solve_triangular_out(const at::Tensor &a, const at::Tensor &b, bool upper, bool left, bool unitriangular,
                                 at::Tensor &out)
{
    return set(out, solve_triangular(a, b, upper, left, unitriangular));
}

at::Tensor cholesky_solve(const at::Tensor &b, const at::Tensor &a, bool upper)
{
    return from_koine(kn_cholesky_solve(as_koine(b).get(), as_koine(a).get(), upper));
}

// --- by LU -----------------------------------------------------------------------------------------------------------

std::tuple<at::Tensor &, at::Tensor &, at::Tensor &> lu_factor_out(const at::Tensor &a, bool pivot, bool check_errors,
                                                                   at::Tensor &lu, at::Tensor &pivots, at::Tensor &info)
{
    TORCH_CHECK(pivot, "linalg.lu_factor: LU without pivoting is not implemented on the device koine");
    factor(a, lu, pivots, &info);
    check_info(info, check_errors, "torch.linalg.lu_factor_ex");
    return {lu, pivots, info};
}

at::Tensor &lu_solve_out(const at::Tensor &lu, const at::Tensor &pivots, const at::Tensor &b, bool left, bool adjoint,
                         at::Tensor &out)
{
    return set(out, kn_linalg_lu_solve(as_koine(lu).get(), as_koine(pivots).get(), as_koine(b).get(), left, adjoint));
}

std::tuple<at::Tensor &, at::Tensor &, at::Tensor &> lu_unpack_out(const at::Tensor &lu, const at::Tensor &pivots,
                                                                   bool unpack_data, bool unpack_pivots, at::Tensor &p,
                                                                   at::Tensor &l, at::Tensor &u)
{
    kn_tensor *lower = nullptr, *upper = nullptr;
    const at::Tensor order = from_koine(kn_lu_unpack(as_koine(lu).get(), as_koine(pivots).get(), &lower, &upper));
    const at::Tensor left = from_koine(lower), right = from_koine(upper);
    if (unpack_pivots)
        set(p, order);
    if (unpack_data) {
        set(l, left);
        set(u, right);
    }
    return {p, l, u};
}

std::tuple<at::Tensor &, at::Tensor &, at::Tensor &> det_out(const at::Tensor &a, at::Tensor &result, at::Tensor &lu,
                                                             at::Tensor &pivots)
{
    factor(column_major(a), lu, pivots, nullptr);
    set(result, kn_linalg_det(as_koine(a).get()));
    return {result, lu, pivots};
}

std::tuple<at::Tensor &, at::Tensor &, at::Tensor &, at::Tensor &>
slogdet_out(const at::Tensor &a, at::Tensor &sign, at::Tensor &logabsdet, at::Tensor &lu, at::Tensor &pivots)
{
    kn_tensor *logarithm = nullptr;
    factor(column_major(a), lu, pivots, nullptr);
    set(sign, kn_linalg_slogdet(as_koine(a).get(), &logarithm));
    set(logabsdet, logarithm);
    return {sign, logabsdet, lu, pivots};
}

std::tuple<at::Tensor &, at::Tensor &, at::Tensor &, at::Tensor &> solve_out(const at::Tensor &a, const at::Tensor &b,
                                                                             bool left, bool check_errors,
                                                                             at::Tensor &result, at::Tensor &lu,
                                                                             at::Tensor &pivots, at::Tensor &info)
{
    factor(a, lu, pivots, &info);
    check_info(info, check_errors, "torch.linalg.solve");
    const bool is_vector = b.dim() == 1 || (b.dim() == a.dim() - 1 && b.sizes() == a.sizes().slice(0, a.dim() - 1));
    const at::Tensor right = is_vector ? b.unsqueeze(-1) : b;
    const at::Tensor x =
        from_koine(kn_linalg_lu_solve(as_koine(lu).get(), as_koine(pivots).get(), as_koine(right).get(), left, false));
    set(result, is_vector ? x.squeeze(-1) : x);
    return {result, lu, pivots, info};
}

std::tuple<at::Tensor &, at::Tensor &> inv_out(const at::Tensor &a, bool check_errors, at::Tensor &inverse,
                                               at::Tensor &info)
{
    kn_tensor *code = nullptr;
    set(inverse, kn_linalg_inv_ex(as_koine(a).get(), &code));
    set(info, code);
    check_info(info, check_errors, "linalg.inv");
    return {inverse, info};
}

// --- factorisations --------------------------------------------------------------------------------------------------

std::tuple<at::Tensor &, at::Tensor &> qr_out(const at::Tensor &a, std::string_view mode, at::Tensor &q, at::Tensor &r)
{
    const kn_qr_mode how = mode == "complete" ? KN_QR_COMPLETE : mode == "r" ? KN_QR_R : KN_QR_REDUCED;
    kn_tensor *upper = nullptr;
    const at::Tensor orthonormal = from_koine(kn_linalg_qr(as_koine(a).get(), how, &upper));
    set(q, how == KN_QR_R ? orthonormal.reshape({0}) : orthonormal);
    set(r, upper);
    return {q, r};
}

std::tuple<at::Tensor &, at::Tensor &, at::Tensor &> svd_out(const at::Tensor &a, bool full_matrices, bool compute_uv,
                                                             std::optional<std::string_view>, at::Tensor &u,
                                                             at::Tensor &s, at::Tensor &vh)
{
    if (!compute_uv) {
        set(s, kn_linalg_svdvals(as_koine(a).get()));
        return {u, s, vh};
    }
    kn_tensor *values = nullptr, *right = nullptr;
    set(u, kn_linalg_svd(as_koine(a).get(), full_matrices, &values, &right));
    set(s, values);
    set(vh, right);
    return {u, s, vh};
}

std::tuple<at::Tensor &, at::Tensor &> eigh_out(const at::Tensor &a, std::string_view triangle, bool compute_v,
                                                at::Tensor &values, at::Tensor &vectors)
{
    const bool upper = triangle == "U" || triangle == "u";
    kn_tensor *columns = nullptr;
    set(values,
        compute_v ? kn_linalg_eigh(as_koine(a).get(), upper, &columns) : kn_linalg_eigvalsh(as_koine(a).get(), upper));
    if (compute_v)
        set(vectors, columns);
    return {values, vectors};
}

at::Tensor &cross_out(const at::Tensor &a, const at::Tensor &b, int64_t dim, at::Tensor &out)
{
    return set(out, kn_linalg_cross(as_koine(a).get(), as_koine(b).get(), static_cast<int>(dim)));
}

at::Tensor matrix_exp(const at::Tensor &a)
{
    static const Op op("linalg_matrix_exp");
    if (at::isReducedFloatingType(a.scalar_type()))
        return result_of(op, Tensors(a.to(at::kFloat))).to(a.scalar_type());
    return result_of(op, Tensors(a));
}

} // namespace

KOINE_KERNELS(m)
{
    m.impl("linalg_matrix_exp", matrix_exp);
    m.impl("linalg_cholesky_ex.L", cholesky_out);
    m.impl("_cholesky_solve_helper", cholesky_solve);
    m.impl("linalg_solve_triangular", solve_triangular);
    m.impl("linalg_solve_triangular.out", solve_triangular_out);
    m.impl("linalg_lu_factor_ex.out", lu_factor_out);
    m.impl("linalg_lu_solve.out", lu_solve_out);
    m.impl("lu_unpack.out", lu_unpack_out);
    m.impl("_linalg_det.result", det_out);
    m.impl("_linalg_slogdet.sign", slogdet_out);
    m.impl("_linalg_solve_ex.result", solve_out);
    m.impl("linalg_inv_ex.inverse", inv_out);
    m.impl("linalg_qr.out", qr_out);
    m.impl("_linalg_svd.U", svd_out);
    m.impl("_linalg_eigh.eigenvalues", eigh_out);
    m.impl("linalg_cross.out", cross_out);
}

} // namespace koine
