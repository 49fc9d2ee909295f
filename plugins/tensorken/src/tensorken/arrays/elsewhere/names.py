"""The public names of numpy, JAX and PyTorch; `python -m tools.foreign_names --read` writes this file."""

VERSIONS = {"numpy": "2.4.6", "jax": "0.10.2", "torch": "2.13.0"}
"""The versions of the libraries."""

NAMES = {
    "numpy": """
False_ ScalarType True_ abs absolute acos acosh add all allclose amax amin angle any append apply_along_axis
apply_over_axes arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition
argsort argwhere around array array2string array_equal array_equiv array_repr array_split array_str
asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray asin asinh asmatrix astype atan atan2
atanh atleast_1d atleast_2d atleast_3d average bartlett base_repr binary_repr bincount bitwise_and
bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor
blackman block bmat bool bool_ broadcast broadcast_arrays broadcast_shapes broadcast_to busday_count
busday_offset busdaycalendar byte bytes_ c_ can_cast cbrt cdouble ceil char character choose clip clongdouble
column_stack common_type complex128 complex256 complex64 complexfloating compress concat concatenate conj
conjugate convolve copy copysign copyto core corrcoef correlate cos cosh count_nonzero cov cross csingle
ctypeslib cumprod cumsum cumulative_prod cumulative_sum datetime64 datetime_as_string datetime_data deg2rad
degrees delete diag diag_indices diag_indices_from diagflat diagonal diff digitize divide divmod dot double
dsplit dstack dtype dtypes e ediff1d einsum einsum_path emath empty empty_like equal errstate euler_gamma
exceptions exp exp2 expand_dims expm1 extract eye f2py fabs fft fill_diagonal finfo fix flatiter flatnonzero
flexible flip fliplr flipud float128 float16 float32 float64 float_power floating floor floor_divide fmax
fmin fmod format_float_positional format_float_scientific frexp from_dlpack frombuffer fromfile fromfunction
fromiter frompyfunc fromregex fromstring full full_like gcd generic genfromtxt geomspace get_include
get_printoptions getbufsize geterr geterrcall gradient greater greater_equal half hamming hanning heaviside
histogram histogram2d histogram_bin_edges histogramdd hsplit hstack hypot i0 identity iinfo imag index_exp
indices inexact inf info inner insert int16 int32 int64 int8 int_ intc integer interp intersect1d intp invert
is_busday isclose iscomplex iscomplexobj isdtype isfinite isfortran isin isinf isnan isnat isneginf isposinf
isreal isrealobj isscalar issubdtype iterable ix_ kaiser kron lcm ldexp left_shift less less_equal lexsort
lib linalg linspace little_endian load loadtxt log log10 log1p log2 logaddexp logaddexp2 logical_and
logical_not logical_or logical_xor logspace long longdouble longlong ma mask_indices matmul matrix
matrix_transpose matvec max maximum may_share_memory mean median memmap meshgrid mgrid min min_scalar_type
minimum mintypecode mod modf moveaxis multiply nan nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax
nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar ndarray ndenumerate ndim
ndindex nditer negative nested_iters newaxis nextafter nonzero not_equal number object_ ogrid ones ones_like
outer packbits pad partition percentile permute_dims pi piecewise place poly poly1d polyadd polyder polydiv
polyfit polyint polymul polynomial polysub polyval positive pow power printoptions prod promote_types ptp put
put_along_axis putmask quantile r_ rad2deg radians random ravel ravel_multi_index real real_if_close rec
recarray reciprocal record remainder repeat require reshape resize result_type right_shift rint roll rollaxis
roots rot90 round row_stack s_ save savetxt savez savez_compressed sctypeDict searchsorted select
set_printoptions setbufsize setdiff1d seterr seterrcall setxor1d shape shares_memory short show_config
show_runtime sign signbit signedinteger sin sinc single sinh size sort sort_complex spacing split sqrt square
squeeze stack std str_ strings subtract sum swapaxes take take_along_axis tan tanh tensordot test testing
tile timedelta64 trace transpose trapezoid tri tril tril_indices tril_indices_from trim_zeros triu
triu_indices triu_indices_from true_divide trunc typecodes typename typing ubyte ufunc uint uint16 uint32
uint64 uint8 uintc uintp ulong ulonglong union1d unique unique_all unique_counts unique_inverse unique_values
unpackbits unravel_index unsignedinteger unstack unwrap ushort vander var vdot vecdot vecmat vectorize void
vsplit vstack where zeros zeros_like
""",
    "numpy.linalg": """
LinAlgError cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm
matrix_power matrix_rank matrix_transpose multi_dot norm outer pinv qr slogdet solve svd svdvals tensordot
tensorinv tensorsolve test trace vecdot vector_norm
""",
    "numpy.random": """
BitGenerator Generator MT19937 PCG64 PCG64DXSM Philox RandomState SFC64 SeedSequence beta binomial
bit_generator bytes chisquare choice default_rng dirichlet exponential f gamma geometric get_bit_generator
get_state gumbel hypergeometric laplace logistic lognormal logseries mtrand multinomial multivariate_normal
negative_binomial noncentral_chisquare noncentral_f normal pareto permutation poisson power rand randint
randn random random_integers random_sample ranf rayleigh sample seed set_bit_generator set_state shuffle
standard_cauchy standard_exponential standard_gamma standard_normal standard_t test triangular uniform
vonmises wald weibull zipf
""",
    "numpy.fft": """
fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq
rfftn test
""",
    "numpy.ndarray": """
T all any argmax argmin argpartition argsort astype base byteswap choose clip compress conj conjugate copy
ctypes cumprod cumsum data device diagonal dot dtype dump dumps fill flags flat flatten getfield imag item
itemsize mT max mean min nbytes ndim nonzero partition prod put ravel real repeat reshape resize round
searchsorted setfield setflags shape size sort squeeze std strides sum swapaxes take to_device tobytes tofile
tolist trace transpose var view
""",
    "jax": """
Array Device NamedSharding P Ref ShapeDtypeStruct Shard ad allow_f16_reductions api_util
array_garbage_collection_guard auto_pcast block_until_ready check_tracer_leaks checkpoint checkpoint_policies
clear_caches closure_convert config copy_to_host_async core custom_batching custom_derivatives
custom_gradient custom_jvp custom_vjp debug debug_infs debug_key_reuse debug_nans default_backend
default_device default_matmul_precision default_prng_impl device_count device_get device_put devices
disable_jit distributed dlpack ds dtypes effects_barrier empty_ref enable_checks enable_custom_prng
enable_x64 ensure_compile_time_eval errors eval_shape experimental explain_cache_misses export ffi float0
free_ref freeze fwd_and_bwd grad hessian host_count host_id host_ids image interpreters jacfwd jacobian
jacrev jax2tf_associative_scan_reductions jit jvp lax legacy_prng_key lib linear_transpose linearize
live_arrays local_device_count local_devices log_compiles make_array_from_callback
make_array_from_process_local_data make_array_from_single_device_arrays make_jaxpr make_mesh
make_user_context memory monitoring named_call named_scope new_ref nn no_execution no_tracing numpy
numpy_dtype_promotion numpy_rank_promotion ops pmap print_environment_info process_count process_index
process_indices profiler pure_callback random ref remat remove_size_one_mesh_axis_from_type reshard scipy
set_mesh shard_map sharding smap softmax_custom_jvp stages thread_guard threefry_partitionable transfer_guard
transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device tree tree_util
typeof typing value_and_grad version vjp vmap
""",
    "jax.numpy": """
ComplexWarning abs absolute acos acosh add all allclose amax amin angle any append apply_along_axis
apply_over_axes arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition
argsort argwhere around array array_equal array_equiv array_repr array_split array_str asarray asin asinh
astype atan atan2 atanh atleast_1d atleast_2d atleast_3d average bartlett bfloat16 bincount bitwise_and
bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor
blackman block bool bool_ broadcast_arrays broadcast_shapes broadcast_to c_ can_cast cbrt cdouble ceil
character choose clip column_stack complex128 complex64 complex_ complexfloating compress concat concatenate
conj conjugate convolve copy copysign corrcoef correlate cos cosh count_nonzero cov cross csingle cumprod
cumsum cumulative_prod cumulative_sum deg2rad degrees delete diag diag_indices diag_indices_from diagflat
diagonal diff digitize divide divmod dot double dsplit dstack dtype e ediff1d einsum einsum_path empty
empty_like equal euler_gamma exp exp2 expand_dims expm1 extract eye fabs fft fill_diagonal finfo flatnonzero
flexible flip fliplr flipud float16 float32 float4_e2m1fn float64 float6_e2m3fn float6_e3m2fn float8_e3m4
float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu
float_ float_power floating floor floor_divide fmax fmin fmod frexp from_dlpack frombuffer fromfile
fromfunction fromiter frompyfunc fromstring full full_like gcd generic geomspace get_printoptions gradient
greater greater_equal hamming hanning heaviside histogram histogram2d histogram_bin_edges histogramdd hsplit
hstack hypot i0 identity iinfo imag index_exp indices inexact inf inner insert int1 int16 int2 int32 int4
int64 int8 int_ integer interp intersect1d invert isclose iscomplex iscomplexobj isdtype isfinite isin isinf
isnan isneginf isposinf isreal isrealobj isscalar issubdtype iterable ix_ kaiser kron lcm ldexp left_shift
less less_equal lexsort linalg linspace load log log10 log1p log2 logaddexp logaddexp2 logical_and
logical_not logical_or logical_xor logspace mask_indices matmul matrix_transpose matvec max maximum mean
median meshgrid mgrid min minimum mod modf moveaxis multiply nan nan_to_num nanargmax nanargmin nancumprod
nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar ndarray ndim
negative newaxis nextafter nonzero not_equal number object_ ogrid ones ones_like outer packbits pad partition
percentile permute_dims pi piecewise place poly polyadd polyder polydiv polyfit polyint polymul polysub
polyval positive pow power printoptions prod promote_types ptp put put_along_axis quantile r_ rad2deg radians
ravel ravel_multi_index real reciprocal remainder repeat reshape resize result_type right_shift rint roll
rollaxis roots rot90 round s_ save savez searchsorted select set_printoptions setdiff1d setxor1d shape sign
signbit signedinteger sin sinc single sinh size sort sort_complex spacing split sqrt square squeeze stack std
subtract sum swapaxes take take_along_axis tan tanh tensordot tile trace transpose trapezoid tri tril
tril_indices tril_indices_from trim_zeros triu triu_indices triu_indices_from true_divide trunc ufunc uint
uint1 uint16 uint2 uint32 uint4 uint64 uint8 union1d unique unique_all unique_counts unique_inverse
unique_values unpackbits unravel_index unsignedinteger unstack unwrap vander var vdot vecdot vecmat vectorize
vsplit vstack where zeros zeros_like
""",
    "jax.numpy.linalg": """
cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm matrix_power
matrix_rank matrix_transpose multi_dot norm outer pinv qr slogdet solve svd svdvals tensordot tensorinv
tensorsolve trace vecdot vector_norm
""",
    "jax.numpy.fft": """
fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq
rfftn
""",
    "jax.lax": """
AccuracyMode ConvDimensionNumbers DotAlgorithm DotAlgorithmPreset DotDimensionNumbers FftType
GatherDimensionNumbers GatherScatterMode Precision RaggedDotDimensionNumbers RandomAlgorithm RoundingMethod
ScatterDimensionNumbers Tolerance abs abs_p acos acos_p acosh acosh_p add add_p after_all after_all_p
all_gather all_gather_p all_to_all all_to_all_p and_p approx_max_k approx_min_k approx_top_k_p argmax
argmax_p argmin argmin_p asin asin_p asinh asinh_p associative_scan atan atan2 atan2_p atan_p atanh atanh_p
axis_index axis_index_p axis_size batch_matmul bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p betainc
bitcast_convert_type bitcast_convert_type_p bitwise_and bitwise_not bitwise_or bitwise_xor broadcast
broadcast_in_dim broadcast_in_dim_p broadcast_like broadcast_shapes broadcast_to_rank broadcasted_iota cbrt
cbrt_p ceil ceil_p clamp clamp_p clz clz_p collapse complex complex_p composite concatenate concatenate_p
cond cond_p conj conj_p conv conv_dimension_numbers conv_general_dilated conv_general_dilated_local
conv_general_dilated_p conv_general_dilated_patches conv_general_permutations conv_general_shape_tuple
conv_shape_tuple conv_transpose conv_transpose_shape_tuple conv_with_general_padding convert_element_type
convert_element_type_p copy_p cos cos_p cosh cosh_p create_token create_token_p cumlogsumexp cumlogsumexp_p
cummax cummax_p cummin cummin_p cumprod cumprod_p cumsum cumsum_p custom_linear_solve custom_root dce_sink
dce_sink_p device_put_p digamma digamma_p div div_p dot dot_general dot_general_p dtype dynamic_index_in_dim
dynamic_slice dynamic_slice_in_dim dynamic_slice_p dynamic_update_index_in_dim dynamic_update_slice
dynamic_update_slice_in_dim dynamic_update_slice_p empty eq eq_p eq_to_p erf erf_inv erf_inv_p erf_p erfc
erfc_p exp exp2 exp2_p exp_p expand_dims expm1 expm1_p fft fft_p floor floor_p fori_loop full full_like
gather gather_p ge ge_p gt gt_p igamma igamma_grad_a igamma_grad_a_p igamma_p igammac igammac_p imag imag_p
index_in_dim index_take integer_pow integer_pow_p iota iota_p is_finite is_finite_p le le_p le_to_p lgamma
lgamma_p linalg linear_solve_p log log1p log1p_p log_p logistic logistic_p lt lt_p lt_to_p map max max_p min
min_p mul mul_p mulhi mulhi_p ne ne_p neg neg_p nextafter nextafter_p not_p optimization_barrier
optimization_barrier_p or_p pad pad_p padtype_to_pads pbroadcast pcast platform_dependent pmax pmax_p pmean
pmin pmin_p polygamma polygamma_p population_count population_count_p pow pow_p ppermute ppermute_p precv
psend pshuffle psum psum_p psum_scatter pswapaxes ragged_all_to_all ragged_all_to_all_p ragged_dot
ragged_dot_general random_gamma_grad real real_p reciprocal reduce reduce_and reduce_and_p reduce_max
reduce_max_p reduce_min reduce_min_p reduce_or reduce_or_p reduce_p reduce_precision reduce_precision_p
reduce_prod reduce_prod_p reduce_sum reduce_sum_p reduce_window reduce_window_max_p reduce_window_min_p
reduce_window_p reduce_window_shape_tuple reduce_window_sum_p reduce_xor reduce_xor_p
regularized_incomplete_beta_p rem rem_p reshape reshape_p rev rev_p rng_bit_generator rng_bit_generator_p
rng_uniform rng_uniform_p round round_p rsqrt rsqrt_p scaled_dot scan scan_p scatter scatter_add
scatter_add_p scatter_apply scatter_max scatter_max_p scatter_min scatter_min_p scatter_mul scatter_mul_p
scatter_p scatter_sub scatter_sub_p select select_and_gather_add_p select_and_scatter_add_p
select_and_scatter_p select_n select_n_p shape_as_value sharding_constraint_p shift_left shift_left_p
shift_right_arithmetic shift_right_arithmetic_p shift_right_logical shift_right_logical_p sign sign_p sin
sin_p sinh sinh_p slice slice_in_dim slice_p sort sort_key_val sort_p split split_p sqrt sqrt_p square
square_p squeeze squeeze_p stack stack_p stage stage_p stop_gradient stop_gradient_p sub sub_p switch tan
tan_p tanh tanh_p tile tile_p top_k top_k_p transpose transpose_p unstack unstack_p while_loop while_p
with_sharding_constraint xor_p zeta zeta_p
""",
    "jax.nn": """
celu dot_product_attention elu gelu get_scaled_dot_general_config glu hard_sigmoid hard_silu hard_swish
hard_tanh identity initializers leaky_relu log1mexp log_sigmoid log_softmax logmeanexp logsumexp mish one_hot
relu relu6 scaled_dot_general scaled_matmul selu sigmoid silu soft_sign softmax softplus sparse_plus
sparse_sigmoid squareplus standardize swish tanh
""",
    "jax.random": """
PRNGKey ball bernoulli beta binomial bits categorical cauchy chisquare choice clone dirichlet
double_sided_maxwell exponential f fold_in gamma generalized_normal geometric gumbel key key_data key_dtype
key_impl laplace loggamma logistic lognormal maxwell multinomial multivariate_normal normal orthogonal pareto
permutation poisson rademacher randint random_gamma_p rayleigh split t triangular truncated_normal uniform
wald weibull_min wrap_key_data
""",
    "jax.tree": """
all broadcast flatten flatten_with_path leaves leaves_with_path map map_with_path reduce reduce_associative
static structure transpose unflatten
""",
    "jax.scipy.special": """
bernoulli bessel_jn beta betainc betaln boxcox boxcox1p comb dawsn digamma entr erf erfc erfcx erfinv exp1
expi expit expn factorial fresnel gamma gammainc gammaincc gammaln gammasgn hyp1f1 hyp2f1 i0 i0e i1 i1e
kl_div log_ndtr log_softmax loggamma logit logsumexp multigammaln ndtr ndtri owens_t poch polygamma rel_entr
sici softmax spence sph_harm_y wofz xlog1py xlogy zeta
""",
    "jax.scipy.linalg": """
block_diag cho_factor cho_solve cholesky circulant companion convolution_matrix det dft eigh eigh_tridiagonal
expm expm_frechet fiedler fiedler_companion funm hadamard hankel helmert hessenberg hilbert inv invhilbert
invpascal leslie lu lu_factor lu_solve pascal polar qr qr_multiply rsf2csf schur solve solve_sylvester
solve_triangular sqrtm svd toeplitz
""",
    "torch": """
AVG AcceleratorError AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType BenchmarkConfig
BenchmarkExecutionStats Block BoolStorage BoolTensor BoolType BufferDict ByteStorage ByteTensor CallStack
Capsule CharStorage CharTensor ClassType Code CompilationUnit CompleteArgumentSpec ComplexType
ConcreteModuleType ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext DeviceObjType
DictType DisableTorchFunction DisableTorchFunctionSubclass DispatchKey DispatchKeySet DoubleStorage
DoubleTensor EnumType ErrorReport Event ExcludeDispatchKeyGuard ExecutionPlan FatalError FileCheck
FloatStorage FloatTensor FloatType FunctionSchema Future FutureType Generator GradScaler Gradient Graph
GraphExecutorState IODescriptor InferredType IntStorage IntTensor IntType InterfaceType JITException ListType
LiteScriptModule LockingLogger LongStorage LongTensor ModuleDict Node NoneType NoopLogger NumberType
OperatorInfo OptionalType OutOfMemoryError PRIVATE_OPS ParameterDict PyObjectType PyTorchFileReader
PyTorchFileWriter RRefType SUM ScriptClass ScriptClassFunction ScriptDict ScriptDictIterator
ScriptDictKeyIterator ScriptFunction ScriptList ScriptListIterator ScriptMethod ScriptModule
ScriptModuleSerializer ScriptObject ScriptObjectProperty SerializationStorageContext ShortStorage ShortTensor
Size StaticModule Stream StreamObjType StringType SymBool SymBoolType SymFloat SymInt SymIntType
TYPE_CHECKING Tag Tensor TensorType ThroughputBenchmark TracingState TupleType Type TypedStorage
USE_GLOBAL_DEPS USE_RTLD_GLOBAL_WITH_LIBTORCH UnionType UntypedStorage Use Value abs abs_ absolute
accelerator acos acos_ acosh acosh_ adaptive_avg_pool1d adaptive_max_pool1d add addbmm addcdiv addcmul addmm
addmv addmv_ addr adjoint affine_grid_generator alias_copy all allclose alpha_dropout alpha_dropout_ amax
amin aminmax amp angle any ao arange arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan
arctan2 arctan_ arctanh arctanh_ are_deterministic_algorithms_enabled argmax argmin argsort argwhere
as_strided as_strided_ as_strided_copy as_strided_scatter as_tensor asarray asin asin_ asinh asinh_ atan
atan2 atan_ atanh atanh_ atleast_1d atleast_2d atleast_3d autocast autocast_decrement_nesting
autocast_increment_nesting autograd avg_pool1d backends baddbmm bartlett_window batch_norm
batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats bernoulli bfloat16 bilinear
binary_cross_entropy_with_logits bincount binomial bit bits16 bits1x8 bits2x4 bits4x2 bits8 bitwise_and
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman_window block_diag bmm bool
broadcast_shapes broadcast_tensors broadcast_to bucketize can_cast cartesian_prod cat ccol_indices_copy cdist
cdouble ceil ceil_ celu celu_ cfloat chain_matmul chalf channel_shuffle channels_last channels_last_3d
cholesky cholesky_inverse cholesky_solve choose_qparams_optimized chunk clamp clamp_ clamp_max clamp_max_
clamp_min clamp_min_ classes classproperty clear_autocast_cache clip clip_ clone col_indices_copy
column_stack combinations compile compiled_with_cxx11_abi compiler complex complex128 complex32 complex64
concat concatenate cond conj conj_physical conj_physical_ constant_pad_nd contiguous_format conv1d conv2d
conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution copysign corrcoef cos cos_
cosh cosh_ cosine_embedding_loss cosine_similarity count_nonzero cov cpp cpu cross crow_indices_copy ctc_loss
cuda cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu
cudnn_convolution_relu cudnn_convolution_transpose cudnn_grid_sampler cudnn_is_acceptable cummax cummin
cumprod cumsum cumulative_trapezoid default_generator deg2rad deg2rad_ dequantize det detach detach_
detach_copy device diag diag_embed diagflat diagonal diagonal_copy diagonal_scatter diff digamma dist
distributed distributions div divide dot double dropout dropout_ dsmm dsplit dstack dtype e eig einsum
embedding embedding_bag embedding_renorm_ empty empty_like empty_permuted empty_quantized empty_strided
enable_grad eq equal erf erf_ erfc erfc_ erfinv exp exp2 exp2_ exp_ expand_copy expm1 expm1_ export eye
fake_quantize_per_channel_affine fake_quantize_per_tensor_affine fbgemm_linear_fp16_weight
fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation
fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix feature_alpha_dropout
feature_alpha_dropout_ feature_dropout feature_dropout_ fft fill fill_ finfo fix fix_ flatten flip fliplr
flipud float float16 float32 float4_e2m1fn_x2 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2
float8_e5m2fnuz float8_e8m0fnu float_power floor floor_ floor_divide fmax fmin fmod fork frac frac_ frexp
frobenius_norm from_dlpack from_file from_numpy frombuffer full full_like func functional
fused_moving_avg_obs_fake_quant futures fx gather gcd gcd_ ge geqrf ger get_autocast_cpu_dtype
get_autocast_dtype get_autocast_gpu_dtype get_autocast_ipu_dtype get_autocast_xla_dtype get_default_device
get_default_dtype get_deterministic_debug_mode get_device get_device_module get_file_path
get_float32_matmul_precision get_num_interop_threads get_num_threads get_rng_state gradient greater
greater_equal grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru gru_cell gt half hamming_window
hann_window hardshrink has_lapack has_mkl has_openmp has_spectral hash_tensor heaviside hinge_embedding_loss
histc histogram histogramdd hsmm hsplit hspmm hstack hub hypot i0 i0_ igamma igammac iinfo imag
import_ir_module import_ir_module_from_buffer index_add index_copy index_fill index_put index_put_
index_reduce index_select indices_copy inf inference_mode init_num_threads initial_seed inner instance_norm
int int1 int16 int2 int3 int32 int4 int5 int6 int64 int7 int8 int_repr inverse is_anomaly_check_nan_enabled
is_anomaly_enabled is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled
is_autocast_ipu_enabled is_autocast_xla_enabled is_complex is_conj
is_deterministic_algorithms_warn_only_enabled is_distributed is_floating_point is_grad_enabled is_inference
is_inference_mode_enabled is_neg is_nonzero is_same_size is_signed is_storage is_tensor is_vulkan_available
is_warn_always_enabled isclose isfinite isin isinf isnan isneginf isposinf isreal istft jagged jit
kaiser_window kl_div kron kthvalue layer_norm layout lcm lcm_ ldexp ldexp_ le legacy_contiguous_format lerp
less less_equal lgamma library linalg linspace load lobpcg log log10 log10_ log1p log1p_ log2 log2_ log_
log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit
logit_ logspace logsumexp long lstm lstm_cell lstsq lt lu lu_solve lu_unpack manual_seed margin_ranking_loss
masked masked_fill masked_scatter masked_select matmul matrix_exp matrix_power matrix_rank max max_pool1d
max_pool1d_with_indices max_pool2d max_pool3d maximum mean median memory_format merge_type_from_type_comment
meshgrid min minimum miopen_batch_norm miopen_convolution miopen_convolution_add_relu miopen_convolution_relu
miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn
mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights mkldnn_max_pool2d
mkldnn_max_pool3d mkldnn_rnn_layer mm mode monitor moveaxis movedim mps msort mtia mul multinomial multiply
multiprocessing mv mvlgamma nan nan_to_num nan_to_num_ nanmean nanmedian nanquantile nansum narrow
narrow_copy native_batch_norm native_channel_shuffle native_dropout native_group_norm native_layer_norm
native_norm ne neg neg_ negative negative_ nested newaxis nextafter nn no_grad nonzero nonzero_static norm
norm_except_dim normal not_equal nuclear_norm numel ones ones_like ops optim orgqr ormqr outer overrides
package pairwise_distance parse_ir parse_schema parse_type_comment pca_lowrank pdist per_channel_affine
per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine per_tensor_symmetric permute
permute_copy pi pinverse pixel_shuffle pixel_unshuffle poisson poisson_nll_loss polar polygamma positive pow
prelu prepare_multiprocessing_environment preserve_format prod profiler
profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 promote_types put q_per_channel_axis q_per_channel_scales
q_per_channel_zero_points q_scale q_zero_point qint32 qint8 qr qscheme quantile quantization
quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm quantized_gru
quantized_gru_cell quantized_lstm quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d
quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell quasirandom quint2x4 quint4x2 quint8
rad2deg rad2deg_ rand rand_like randint randint_like randn randn_like random randperm range ravel real
reciprocal reciprocal_ relu relu_ remainder renorm repeat_interleave reshape resize_as_ resize_as_sparse_
resolve_conj resolve_neg result_type return_types rms_norm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell roll
rot90 round round_ row_indices_copy row_stack rrelu rrelu_ rsqrt rsqrt_ rsub saddmm save scalar_tensor
scatter scatter_add scatter_reduce searchsorted seed segment_reduce select select_copy select_scatter selu
selu_ serialization set_anomaly_enabled set_autocast_cache_enabled set_autocast_cpu_dtype
set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype
set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled
set_default_device set_default_dtype set_default_tensor_type set_deterministic_debug_mode
set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_num_threads set_printoptions
set_rng_state set_warn_always sgn short sigmoid sigmoid_ sign signal signbit sin sin_ sinc sinc_ sinh sinh_
slice_copy slice_inverse slice_scatter slogdet smm softmax solve sort sparse sparse_bsc sparse_bsc_tensor
sparse_bsr sparse_bsr_tensor sparse_compressed_tensor sparse_coo sparse_coo_tensor sparse_csc
sparse_csc_tensor sparse_csr sparse_csr_tensor special split split_copy split_with_sizes
split_with_sizes_copy spmm sqrt sqrt_ square square_ squeeze squeeze_copy sspaddmm stack std std_mean stft
storage strided sub subtract sum svd svd_lowrank swapaxes swapdims sym_constrain_range
sym_constrain_range_for_size sym_float sym_fresh_size sym_int sym_ite sym_max sym_min sym_not sym_sqrt
sym_sum symeig t t_copy take take_along_dim tan tan_ tanh tanh_ tensor tensor_split tensordot testing
thread_safe_generator threshold threshold_ tile to_dlpack topk torch_version trace transpose transpose_copy
trapezoid trapz triangular_solve tril tril_indices triplet_margin_loss triu triu_indices true_divide trunc
trunc_ typename types uint1 uint16 uint2 uint3 uint32 uint4 uint5 uint6 uint64 uint7 uint8 unbind unbind_copy
unflatten unfold_copy unify_type_list unique unique_consecutive unravel_index unsafe_chunk unsafe_split
unsafe_split_with_sizes unsqueeze unsqueeze_copy use_deterministic_algorithms utils values_copy vander var
var_mean vdot version view_as_complex view_as_complex_copy view_as_real view_as_real_copy view_copy vmap
vsplit vstack wait where while_loop windows xlogy xlogy_ xpu zero_ zeros zeros_like
""",
    "torch.nn": """
AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveLogSoftmaxWithLoss AdaptiveMaxPool1d
AdaptiveMaxPool2d AdaptiveMaxPool3d AlphaDropout AvgPool1d AvgPool2d AvgPool3d BCELoss BCEWithLogitsLoss
BatchNorm1d BatchNorm2d BatchNorm3d Bilinear Buffer CELU CTCLoss ChannelShuffle CircularPad1d CircularPad2d
CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d Container Conv1d Conv2d Conv3d ConvTranspose1d
ConvTranspose2d ConvTranspose3d CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss CrossMapLRN2d
DataParallel Dropout Dropout1d Dropout2d Dropout3d ELU Embedding EmbeddingBag FeatureAlphaDropout Flatten
Fold FractionalMaxPool2d FractionalMaxPool3d GELU GLU GRU GRUCell GaussianNLLLoss GroupNorm Hardshrink
Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss HuberLoss Identity InstanceNorm1d InstanceNorm2d
InstanceNorm3d KLDivLoss L1Loss LPPool1d LPPool2d LPPool3d LSTM LSTMCell LayerNorm LazyBatchNorm1d
LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d
LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear LeakyReLU Linear
LinearCrossEntropyLoss LinearCrossEntropyOptions LocalResponseNorm LogSigmoid LogSoftmax MSELoss
MarginRankingLoss MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d Mish Module ModuleDict
ModuleList MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss MultiheadAttention NLLLoss NLLLoss2d
PReLU PairwiseDistance Parameter ParameterDict ParameterList PixelShuffle PixelUnshuffle PoissonNLLLoss
RMSNorm RNN RNNBase RNNCell RNNCellBase RReLU ReLU ReLU6 ReflectionPad1d ReflectionPad2d ReflectionPad3d
ReplicationPad1d ReplicationPad2d ReplicationPad3d SELU Sequential SiLU Sigmoid SmoothL1Loss SoftMarginLoss
Softmax Softmax2d Softmin Softplus Softshrink Softsign SyncBatchNorm Tanh Tanhshrink Threshold Transformer
TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer TripletMarginLoss
TripletMarginWithDistanceLoss Unflatten Unfold UninitializedBuffer UninitializedParameter Upsample
UpsamplingBilinear2d UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d attention common_types factory_kwargs
functional grad init intrinsic modules parallel parameter qat quantizable quantized utils
""",
    "torch.nn.functional": """
BroadcastingList1 BroadcastingList2 BroadcastingList3 DType GRID_SAMPLE_INTERPOLATION_MODES
GRID_SAMPLE_PADDING_MODES ScalingType SwizzleType TYPE_CHECKING Tensor adaptive_avg_pool1d
adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool1d_with_indices
adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d adaptive_max_pool3d_with_indices
affine_grid alpha_dropout assert_int_or_pair avg_pool1d avg_pool2d avg_pool3d batch_norm bilinear
binary_cross_entropy binary_cross_entropy_with_logits boolean_dispatch celu celu_ channel_shuffle conv1d
conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d cosine_embedding_loss
cosine_similarity cross_entropy ctc_loss dropout dropout1d dropout2d dropout3d elu elu_ embedding
embedding_bag feature_alpha_dropout fold fractional_max_pool2d fractional_max_pool2d_with_indices
fractional_max_pool3d fractional_max_pool3d_with_indices gaussian_nll_loss gelu glu grad grid_sample
group_norm grouped_mm gumbel_softmax handle_torch_function hardshrink hardsigmoid hardswish hardtanh
hardtanh_ has_torch_function has_torch_function_unary has_torch_function_variadic hinge_embedding_loss
huber_loss instance_norm interpolate kl_div l1_loss layer_norm leaky_relu leaky_relu_ linear
linear_cross_entropy local_response_norm log_softmax logsigmoid lp_pool1d lp_pool2d lp_pool3d
margin_ranking_loss max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d mish mse_loss multi_head_attention_forward
multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss native_channel_shuffle nll_loss
normalize one_hot pad pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu relu6
relu_ reproducibility_notes rms_norm rrelu rrelu_ scaled_dot_product_attention scaled_grouped_mm scaled_mm
selu selu_ sigmoid silu smooth_l1_loss soft_margin_loss softmax softmin softplus softshrink softsign
sparse_support_notes tanh tanhshrink tf32_notes threshold threshold_ triplet_margin_loss
triplet_margin_with_distance_loss unfold upsample upsample_bilinear upsample_nearest
""",
    "torch.nn.utils.rnn": """
PackedSequence bind copy_method_params invert_permutation pack_padded_sequence pack_sequence
pad_packed_sequence pad_sequence unpack_sequence unpad_sequence
""",
    "torch.linalg": """
LinAlgError cholesky cholesky_ex common_notes cond cross det diagonal eig eigh eigvals eigvalsh
householder_product inv inv_ex ldl_factor ldl_factor_ex ldl_solve lstsq lu lu_factor lu_factor_ex lu_solve
matmul matrix_exp matrix_norm matrix_power matrix_rank multi_dot norm pinv qr slogdet solve solve_ex
solve_triangular svd svdvals tensorinv tensorsolve vander vecdot vector_norm
""",
    "torch.special": """
airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u
chebyshev_polynomial_v chebyshev_polynomial_w common_args digamma entr erf erfc erfcx erfinv exp2 expit expm1
gammainc gammaincc gammaln hermite_polynomial_h hermite_polynomial_he i0 i0e i1 i1e laguerre_polynomial_l
legendre_polynomial_p log1p log_ndtr log_softmax logit logsumexp modified_bessel_i0 modified_bessel_i1
modified_bessel_k0 modified_bessel_k1 multi_dim_common multigammaln ndtr ndtri polygamma psi round
scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t
shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sinc softmax
spherical_bessel_j0 xlog1py xlogy zeta
""",
    "torch.fft": """
Tensor common_args factory_common_args fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn
ifftshift ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn
""",
    "torch.Tensor": """
H T abs abs_ absolute absolute_ acos acos_ acosh acosh_ add add_ addbmm addbmm_ addcdiv addcdiv_ addcmul
addcmul_ addmm addmm_ addmv addmv_ addr addr_ adjoint all allclose amax amin aminmax angle any apply_ arccos
arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2 arctan2_ arctan_ arctanh arctanh_
argmax argmin argsort argwhere as_strided as_strided_ as_strided_scatter as_subclass asin asin_ asinh asinh_
atan atan2 atan2_ atan_ atanh atanh_ backward baddbmm baddbmm_ bernoulli bernoulli_ bfloat16 bincount
bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or
bitwise_or_ bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ bmm bool broadcast_to byte
cauchy_ ccol_indices cdouble ceil ceil_ cfloat chalf char cholesky cholesky_inverse cholesky_solve chunk
clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip clip_ clone coalesce col_indices conj
conj_physical conj_physical_ const_data_ptr contiguous copy_ copysign copysign_ corrcoef cos cos_ cosh cosh_
count_nonzero cov cpu cross crow_indices cuda cummax cummin cumprod cumprod_ cumsum cumsum_ data data_ptr
deg2rad deg2rad_ dense_dim dequantize det detach detach_ device diag diag_embed diagflat diagonal
diagonal_scatter diff digamma digamma_ dim dim_order dist div div_ divide divide_ dot double dsplit dtype eig
element_size eq eq_ equal erf erf_ erfc erfc_ erfinv erfinv_ exp exp2 exp2_ exp_ expand expand_as expm1
expm1_ exponential_ fill_ fill_diagonal_ fix fix_ flatten flip fliplr flipud float float_power float_power_
floor floor_ floor_divide floor_divide_ fmax fmin fmod fmod_ frac frac_ frexp gather gcd gcd_ ge ge_
geometric_ geqrf ger get_device grad grad_dtype grad_fn greater greater_ greater_equal greater_equal_ gt gt_
half hardshrink hash_tensor heaviside heaviside_ histc histogram hsplit hypot hypot_ i0 i0_ igamma igamma_
igammac igammac_ imag index index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_put
index_put_ index_reduce index_reduce_ index_select indices inner int int_repr inverse ipu is_coalesced
is_complex is_conj is_contiguous is_cpu is_cuda is_distributed is_floating_point is_inference is_ipu is_leaf
is_maia is_meta is_mkldnn is_mps is_mtia is_neg is_nested is_nonzero is_pinned is_quantized is_same_size
is_set_to is_shared is_signed is_sparse is_sparse_csr is_vulkan is_xla is_xpu isclose isfinite isinf isnan
isneginf isposinf isreal istft item itemsize kron kthvalue layout lcm lcm_ ldexp ldexp_ le le_ lerp lerp_
less less_ less_equal less_equal_ lgamma lgamma_ log log10 log10_ log1p log1p_ log2 log2_ log_ log_normal_
log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_and_ logical_not logical_not_
logical_or logical_or_ logical_xor logical_xor_ logit logit_ logsumexp long lstsq lt lt_ lu lu_solve mH mT
map2_ map_ masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select matmul matrix_exp
matrix_power max maximum mean median min minimum mm mode module_load moveaxis movedim msort mtia mul mul_
multinomial multiply multiply_ mv mvlgamma mvlgamma_ name nan_to_num nan_to_num_ nanmean nanmedian
nanquantile nansum narrow narrow_copy nbytes ndim ndimension ne ne_ neg neg_ negative negative_ nelement new
new_empty new_empty_strided new_full new_ones new_tensor new_zeros nextafter nextafter_ nonzero
nonzero_static norm normal_ not_equal not_equal_ numel numpy orgqr ormqr outer output_nr permute pin_memory
pinverse polygamma polygamma_ positive pow pow_ prelu prod put put_ q_per_channel_axis q_per_channel_scales
q_per_channel_zero_points q_scale q_zero_point qr qscheme quantile rad2deg rad2deg_ random_ ravel real
reciprocal reciprocal_ record_stream register_hook register_post_accumulate_grad_hook reinforce relu relu_
remainder remainder_ renorm renorm_ repeat repeat_interleave requires_grad requires_grad_ reshape reshape_as
resize resize_ resize_as resize_as_ resize_as_sparse_ resolve_conj resolve_neg retain_grad retains_grad roll
rot90 round round_ row_indices rsqrt rsqrt_ scatter scatter_ scatter_add scatter_add_ scatter_reduce
scatter_reduce_ select select_scatter set_ sgn sgn_ shape share_memory_ short sigmoid sigmoid_ sign sign_
signbit sin sin_ sinc sinc_ sinh sinh_ size slice_inverse slice_scatter slogdet smm softmax solve sort
sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_ split split_with_sizes sqrt sqrt_ square
square_ squeeze squeeze_ sspaddmm std stft storage storage_offset storage_type stride sub sub_ subtract
subtract_ sum sum_to_size svd swapaxes swapaxes_ swapdims swapdims_ symeig t t_ take take_along_dim tan tan_
tanh tanh_ tensor_split tile to to_dense to_mkldnn to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr
to_sparse_coo to_sparse_csc to_sparse_csr tolist topk trace transpose transpose_ triangular_solve tril tril_
triu triu_ true_divide true_divide_ trunc trunc_ type type_as unbind unflatten unfold uniform_ unique
unique_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_ untyped_storage
values var vdot view view_as volatile vsplit where xlogy xlogy_ xpu zero_
""",
}
"""The names of each module or class, separated by blanks."""
