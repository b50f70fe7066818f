/* koine/csv.h - tables in text files (RFC 4180) as datasets. */
#ifndef KOINE_CSV_H
#define KOINE_CSV_H

#include <koine/common.h>
#include <koine/data.h>
#include <koine/dtype.h>

KN_BEGIN_DECLS

typedef struct kn_csv_params {
    bool header;    /* default true: the first line has the columns' names; false: these are "0", "1", ... */
    char delimiter; /* default ',' */
    const char *const *columns; /* default NULL: all but the target; names of those of "input": KN_NAMES("x", "y") */
    kn_dtype dtype;             /* of "input"; default float32 */
    const char *target;         /* default NULL: no "target"; the name of its column */
    /* default int64: classes. If all of the column's values are whole numbers these are the classes, else the classes
     * are its different texts, numbered in their order by bytes. Any other dtype: numbers. */
    kn_dtype target_dtype;
    /* default NULL; with texts as classes: all of them, in the order of their numbers; others are errors. For a second
     * file, which need not have every class: kn_dataset_classes of the first one. Copied */
    const char *const *classes;
    bool missing; /* default false; true: an empty value of a floating dtype is NaN instead of an error */
} kn_csv_params;
#define KN_CSV_DEFAULTS .header = true, .delimiter = ',', .dtype = KN_F32, .target_dtype = KN_I64
KN_API kn_csv_params kn_csv_params_init(void);

/* A file, plain or gzipped, which is read at once. Sample i is its i-th record: "input", the values of the columns, and
 * "target", without dimensions. Values may be in quotes, with delimiters, line ends and doubled quotes inside; blanks
 * around numbers and empty lines are skipped. Anything else that is no number is KN_ERR_FORMAT: the message has the
 * line, the column and the text. kn_dataset_classes returns the texts of classes.
 *
 *     kn_dataset *iris = kn_csv_dataset("iris.csv", .target = "species"); */
KN_API kn_dataset *kn_csv_dataset_with(const char *path, const kn_csv_params *params);
#define kn_csv_dataset(path, ...) KN_CALL(kn_csv_dataset_with(path, &(kn_csv_params){KN_CSV_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
