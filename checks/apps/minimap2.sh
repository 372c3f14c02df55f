# shellcheck shell=sh
# minimap2 with a thread a core: a random genome of GENOME letters, and READS reads of it for each core.
# Run by siteproof's node.sh in the node's own folder; prints minimap2's messages, then how many reads
# it placed within 20 letters of where they were taken from.
# shellcheck source=siteproof/checks/on_node/application.sh
. "$1/application.sh"
choose minimap2
echo "program=minimap2" >>facts
begin_work
# A linear congruential generator that is exact in the numbers of every awk (Lewis, Goodman, Miller 1969).
awk -v bases="$GENOME" -v reads="$READS" '
    function draw(n) { seed = (seed * 16807) % 2147483647; return int(seed / 2147483647 * n) }
    BEGIN {
        seed = 1978
        size = 1000 # letters of a read
        split("A C G T", letter, " ")
        print ">genome" >"genome.fa"
        for (i = 0; i < bases / 100; i++) {
            row[i] = ""
            for (j = 0; j < 100; j++) row[i] = row[i] letter[draw(4) + 1]
            print row[i] >"genome.fa"
        }
        for (i = 0; i < reads; i++) {
            at = draw(bases - size - 200)
            text = ""
            for (j = int(at / 100); length(text) < size + 100; j++) text = text row[j]
            text = substr(text, at % 100 + 1, size)
            for (j = draw(100) + 1; j <= size; j += 100) {
                other = (index("ACGT", substr(text, j, 1)) + draw(3)) % 4 + 1
                text = substr(text, 1, j - 1) letter[other] substr(text, j + 1)
            }
            printf ">%d.%d\n%s\n", i, at, text >"reads.fa"
        }
    }' || exit
set --
while [ $# -lt "$cores" ]; do # the same reads once for each core
    set -- "$@" reads.fa
done
minimap2 -cx map-ont -t "$cores" -o placed.paf genome.fa "$@" 2>&1 || exit
awk -v reads="$((READS * cores))" '
    /\ttp:A:P/ {
        split($1, name, ".")
        away = $8 - $3 - name[2]
        if ($5 == "+" && away > -20 && away < 20) placed++
    }
    END { printf "placed %d of %d reads\n", placed, reads }' placed.paf
