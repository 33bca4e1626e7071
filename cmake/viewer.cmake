# SPDX-License-Identifier: Apache-2.0
# The viewer's page: src/segment, src/trace and src/analyze for WebAssembly, the scripts of viewer/, and both as bytes
# in the command. Needs node, npm and clang with wasi-libc (tools/bootstrap viewer); without them the command is built
# all the same, and `weft view` says what is missing. Only in the preset `release`: the page is the same in all of them.
set(viewer_default OFF)
if(WEFT_PRESET STREQUAL "release" AND NOT WEFT_SANITIZE AND NOT WEFT_ONE)
	set(viewer_default ON)
endif()
option(WEFT_VIEWER "Build the page of weft view into the command" ${viewer_default})

set(viewer_dir ${PROJECT_SOURCE_DIR}/viewer)
set(viewer_out ${PROJECT_BINARY_DIR}/viewer)
set(viewer_missing "")
if(NOT WEFT_VIEWER)
	set(viewer_missing "it is left out of this build (cmake -DWEFT_VIEWER=ON)")
else()
	find_program(NODE node)
	find_program(NPM npm)
	find_program(WASM_CLANG NAMES clang-14 clang-16 clang-15 clang)
	find_program(WASM_LD NAMES wasm-ld-14 wasm-ld-16 wasm-ld-15 wasm-ld)
	find_path(WASI_INCLUDE_DIR wasi/libc.h PATHS /usr/include/wasm32-wasi NO_DEFAULT_PATH)
	foreach(need NODE NPM WASM_CLANG WASM_LD WASI_INCLUDE_DIR)
		if(NOT ${need})
			string(TOLOWER ${need} need)
			list(APPEND viewer_missing ${need})
		endif()
	endforeach()
	if(NOT viewer_missing)
		file(WRITE ${viewer_out}/try.c "int main(void) { return 0; }\n")
		execute_process(COMMAND ${WASM_CLANG} --target=wasm32-wasi -fuse-ld=${WASM_LD} ${viewer_out}/try.c
			-o ${viewer_out}/try.wasm RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
		if(failed)
			list(APPEND viewer_missing "a compiler that links for wasm32-wasi")
		endif()
	endif()
	if(viewer_missing)
		list(JOIN viewer_missing ", " viewer_missing)
		string(PREPEND viewer_missing "not found when weft was built: ")
	else() # as the lock file has them; scripts of packages are not run
		set(viewer_modules ${viewer_dir}/node_modules/.weft-installed)
		if(${viewer_dir}/package-lock.json IS_NEWER_THAN ${viewer_modules})
			message(STATUS "Packages of the viewer")
			execute_process(COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund --loglevel=error
				WORKING_DIRECTORY ${viewer_dir} RESULT_VARIABLE failed TIMEOUT 600)
			if(failed)
				set(viewer_missing "npm ci failed when weft was built")
			else()
				file(TOUCH ${viewer_modules})
			endif()
		endif()
		set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${viewer_dir}/package-lock.json)
	endif()
	if(viewer_missing)
		message(STATUS "weft view will have no page: ${viewer_missing}; run tools/bootstrap viewer")
	endif()
endif()

file(MAKE_DIRECTORY ${viewer_out})
if(viewer_missing)
	file(CONFIGURE OUTPUT ${viewer_out}/bundle.c @ONLY CONTENT
"/* SPDX-License-Identifier: Apache-2.0 */
#include \"view_bundle.h\"
const struct view_file view_bundle[] = {{0}};
const char view_bundle_missing[] = \"@viewer_missing@\";
")
	set(viewer_bundle ${viewer_out}/bundle.c)
	return()
endif()

# Calls of the system have the numbers that the command has.
file(MAKE_DIRECTORY ${viewer_out}/include ${viewer_out}/o)
execute_process(COMMAND ${CMAKE_C_COMPILER} -E -dM -x c -include sys/syscall.h /dev/null OUTPUT_VARIABLE calls)
string(REGEX MATCHALL "#define (SYS|__NR)_[^\n]*" calls "${calls}")
list(JOIN calls "\n" calls)
file(CONFIGURE OUTPUT ${viewer_out}/include/weft_syscalls.h CONTENT "${calls}\n" @ONLY)
configure_file(${XXHASH_INCLUDE_DIR}/xxhash.h ${viewer_out}/include/xxhash.h COPYONLY)

file(GLOB wasm_sources CONFIGURE_DEPENDS src/analyze/*.c src/trace/*.c cli/page*.c cli/report*.c cli/print*.c
	viewer/wasm/*.c)
list(FILTER wasm_sources EXCLUDE REGEX "/analyze/annotate|/trace/reader\\.c$|/cli/pager\\.c$")
foreach(name alloc arena buf clock error intern map sort)
	list(APPEND wasm_sources ${PROJECT_SOURCE_DIR}/src/base/${name}.c)
endforeach()
foreach(name batch code_tables column_decode cursor decode defs hash index reader records table tables zstd_mem)
	list(APPEND wasm_sources ${PROJECT_SOURCE_DIR}/src/segment/${name}.c)
endforeach()
list(APPEND wasm_sources ${PROJECT_SOURCE_DIR}/src/symbol/texts.c ${PROJECT_SOURCE_DIR}/cli/common.c)

# zstd's decoder, from a package of the registry that has its sources.
set(wasm_zstd ${viewer_dir}/node_modules/zstd-napi/deps/zstd/lib)
set(zstd_sources common/debug common/entropy_common common/error_private common/fse_decompress common/xxhash
	common/zstd_common decompress/huf_decompress decompress/zstd_ddict decompress/zstd_decompress
	decompress/zstd_decompress_block)

set(wasm_flags --target=wasm32-wasi -std=gnu11 -msimd128 -fvisibility=hidden -ffunction-sections -fdata-sections
	-D_GNU_SOURCE=1 -DNDEBUG)
set(wasm_includes -include ${viewer_dir}/wasm/shim/compat.h -I${viewer_dir}/wasm/shim -I${viewer_out}/include
	-I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/cli -I${viewer_dir}/wasm
	-I${wasm_zstd} -DWEFT_SHIM_MACHINE="${CMAKE_SYSTEM_PROCESSOR}")
set(wasm_objects "")
foreach(source ${wasm_sources})
	file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${source})
	string(REPLACE "/" "_" name ${name})
	set(object ${viewer_out}/o/${name}.o)
	set(level -O2)
	if(name MATCHES "^src_segment|_store\\.c$") # loops over columns
		set(level -O3)
	endif()
	add_custom_command(OUTPUT ${object}
		COMMAND ${WASM_CLANG} ${wasm_flags} ${level} ${wasm_includes} -Wall -Wextra
			-MD -MF ${object}.d -c ${source} -o ${object}
		DEPENDS ${source} ${viewer_modules} DEPFILE ${object}.d COMMENT "WebAssembly ${name}" VERBATIM)
	list(APPEND wasm_objects ${object})
endforeach()
foreach(source ${zstd_sources})
	string(REPLACE "/" "_" name ${source})
	set(object ${viewer_out}/o/zstd_${name}.o)
	add_custom_command(OUTPUT ${object}
		COMMAND ${WASM_CLANG} ${wasm_flags} -O3 -DZSTD_DISABLE_ASM -I${wasm_zstd} -c ${wasm_zstd}/${source}.c
			-o ${object}
		DEPENDS ${viewer_modules} COMMENT "WebAssembly zstd ${source}" VERBATIM)
	list(APPEND wasm_objects ${object})
endforeach()

set(viewer_wasm ${viewer_out}/weft.wasm)
add_custom_command(OUTPUT ${viewer_wasm}
	COMMAND ${WASM_CLANG} --target=wasm32-wasi -mexec-model=reactor -fuse-ld=${WASM_LD} -Wl,--gc-sections
		-Wl,--export-dynamic -Wl,--strip-all -Wl,-z,stack-size=1048576 -o ${viewer_wasm} ${wasm_objects} -lm
	DEPENDS ${wasm_objects} COMMENT "weft.wasm" VERBATIM)

# The page, and all of it as one C file.
file(GLOB_RECURSE viewer_sources CONFIGURE_DEPENDS viewer/src/* viewer/*.html viewer/*.css viewer/*.mjs)
list(FILTER viewer_sources EXCLUDE REGEX "/node_modules/")
set(viewer_bundle ${viewer_out}/bundle.c)
add_custom_command(OUTPUT ${viewer_bundle}
	COMMAND ${NODE} ${viewer_dir}/build.mjs ${viewer_wasm} ${viewer_out}
	DEPENDS ${viewer_sources} ${viewer_wasm} ${viewer_modules} ${PROJECT_SOURCE_DIR}/LICENSE
	COMMENT "The page of weft view" VERBATIM)
add_custom_target(viewer DEPENDS ${viewer_bundle})
