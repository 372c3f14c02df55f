# shellcheck shell=sh
# Counters of a node, a line a second until the file STOP is there: seconds since 1970, bytes of all
# interfaces but lo, bytes that the file system PATH has read and written ('-': there is no counter).
#
#   sh counters.sh NODE PATH STOP      prints `node NODE network NAME storage NAME` first: nodes with
#                                      one NAME share a counter, as containers of one machine do
LC_ALL=C
export LC_ALL
node=$1 path=$2 stop=$3

mounted() { # DEVICE-NUMBERS KIND SOURCE POINT of the file system that holds the path
    path=$path awk '
        {
            gsub(/\\040/, " ", $5)
            at = $5 == "/" ? "/" : $5 "/"
            if (index(ENVIRON["path"] "/", at) != 1 || length(at) < best) next
            best = length(at)
            for (i = 6; $i != "-"; i++) {}
            found = $3 " " $(i + 1) " " $(i + 2) " " $5
        }
        END { print found }' /proc/self/mountinfo
}

carried() {
    awk 'NR > 2 { sub(/:/, " ") } NR > 2 && $1 != "lo" { n += $2 + $10 } END { printf "%.0f", n }' \
        /proc/net/dev
}

stored() {
    case $kind in
    nfs*) # what clients have sent to and received from the server
        at=$at awk '$1 == "device" { ours = $5 == ENVIRON["at"] }
            ours && $1 == "bytes:" { printf "%.0f", $6 + $7; found = 1 }
            END { if (!found) printf "-" }' /proc/self/mountstats ;;
    lustre) # one folder a client of a file system; written from the manual, 'llite Tunables'
        cat "/proc/fs/lustre/llite/${source##*/}"-*/stats \
            "/sys/kernel/debug/lustre/llite/${source##*/}"-*/stats 2>/dev/null |
            awk '$1 == "read_bytes" || $1 == "write_bytes" { n += $7; found = 1 }
                END { if (found) printf "%.0f", n; else printf "-" }' ;;
    *)
        numbers=$numbers awk 'BEGIN { split(ENVIRON["numbers"], of, ":") }
            $1 == of[1] && $2 == of[2] { printf "%.0f", ($6 + $10) * 512; found = 1 }
            END { if (!found) printf "-" }' /proc/diskstats ;;
    esac
}

read -r numbers kind source at <<END
$(mounted)
END
read -r boot </proc/sys/kernel/random/boot_id
echo "node $node network $(readlink /proc/self/ns/net)@$boot storage $numbers@$boot"
while [ ! -e "$stop" ]; do
    echo "$(date +%s) $(carried) $(stored)"
    sleep 1
done
echo "$(date +%s) $(carried) $(stored)"
